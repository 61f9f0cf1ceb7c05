import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The sessions of a shard, with their index by client identifier, expiry timers and queue totals.
package struct Sessions: ~Copyable {
    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var records = Slab<Session>()
    private var index = HashIndex()
    /// Counts of lost messages; few sessions have any.
    private var drops = Slab<SessionDropCounts>()
    private var expiries: TimerWheel
    /// Sessions whose next message waits for a commit.
    private var awaitingCommit = GrowableBuffer<UInt32>()
    private var generation: UInt32 = 0
    private var lastNumber: UInt64 = 0
    private var identifierSeed: UInt64
    private let hash: KeyedHash
    package private(set) var persistentCount = 0
    /// Removed sessions whose indices still stand in subscriptions.
    private var keptIndices = 0
    package private(set) var bytes = SessionBytes()
    package var totals = SessionTotals()
    package var loads = QueueLoads()
    package var holes = StoredHoles()

    /// `seed` is for generated client identifiers.
    package init(hash: KeyedHash, seed: UInt64, now: MonotonicTime) {
        self.hash = hash
        identifierSeed = seed
        expiries = TimerWheel(now: now)
    }

    // MARK: Records

    package subscript(index: UInt32) -> Session {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: index)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: index) }
    }

    /// Sessions, without those whose index alone is kept.
    package var count: Int { records.count - keptIndices }
    /// One more than the highest index used so far.
    package var endIndex: UInt32 { records.endIndex }

    /// The session of a client identifier.
    package func find(_ identifier: UnsafeRawBufferPointer) -> UInt32? {
        index.find(hash(identifier)) { records[$0].clientID.equals(identifier) }
    }

    package func isCurrent(_ handle: Handle) -> Bool {
        handle.index < records.endIndex && records[handle.index].generation == handle.generation
    }

    /// Adds a session. `number` is given for a stored session; a new session gets the next one.
    package mutating func add(
        _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?, isPersistent: Bool,
        number: UInt64? = nil, accessGeneration: UInt32, pool: BytePool
    ) -> UInt32 {
        generation = generation == UInt32.max >> 1 ? 1 : generation + 1
        if number == nil { lastNumber += 1 }
        let place = records.insert(
            Session(
                generation: generation, number: number ?? lastNumber, isPersistent: isPersistent,
                accessGeneration: accessGeneration, clientID: identifier, user: user,
                pool: pool))
        index.insert(hash(identifier), place)
        if isPersistent { persistentCount += 1 }
        bytes.change(by: SessionBytes.of(records[place]), user: key(of: user))
        return place
    }

    /// Removes a session with its queue. Its client must be offline, and its subscriptions removed;
    /// while some are left, `keepsIndex` keeps the index from being used again until
    /// ``freeIndex(_:)``.
    package mutating func remove(_ session: UInt32, keepsIndex: Bool, pool: BytePool) {
        precondition(records[session].connection == nil, "a connected session was removed")
        if records[session].isPersistent { persistentCount -= 1 }
        countIdentifiers(of: session, areKept: false)
        count(session, -SessionBytes.of(records[session]))
        cancelExpiry(session)
        totals.replace(records[session].outbound, by: OutboundQueue())
        records[session].clientID.withBytes { index.remove(hash($0), session) }
        records[session].releaseAll(in: pool)
        if records[session].drops != noIndex { drops.remove(records[session].drops) }
        records[session] = .unused
        keptIndices += 1
        if !keepsIndex { freeIndex(session) }
    }

    /// Frees the index of a removed session, whose subscriptions are gone.
    package mutating func freeIndex(_ session: UInt32) {
        keptIndices -= 1
        records.remove(session)
    }

    /// Sets the highest session number that the store holds.
    package mutating func restore(lastNumber: UInt64) { self.lastNumber = lastNumber }

    /// Generates an identifier for a client that sent an empty one [MQTT-3.1.3-6].
    package mutating func generateIdentifier() -> [UInt8] {
        while true {
            identifierSeed &+= 0x9E37_79B9_7F4A_7C15
            var value = withUnsafeBytes(of: identifierSeed) { hash($0) }
            var identifier = [UInt8]("hermes-".utf8)
            for _ in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: value & 0xF)
                identifier.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
                value >>= 4
            }
            if identifier.withUnsafeBytes({ find($0) }) == nil { return identifier }
        }
    }

    // MARK: Bytes

    /// The key of a proven user name in ``SessionBytes``; 0 for other clients.
    package func key(of user: SessionUser?) -> UInt32 {
        guard let user, user.isProven else { return 0 }
        return SessionBytes.key(ofUser: hash(user.name))
    }

    /// The same of a session's owner.
    package func userKey(of session: UInt32) -> UInt32 {
        guard records[session].isUserProven else { return 0 }
        return records[session].userName.withBytes {
            key(of: SessionUser(name: $0, proof: .password))
        }
    }

    /// Counts so many bytes more for a session.
    package mutating func count(_ session: UInt32, _ change: Int) {
        guard change != 0 else { return }
        bytes.change(by: change, user: userKey(of: session))
    }

    /// Counts a change of a session's subscriptions, which had `before` bytes until then.
    package mutating func countSubscriptions(of session: UInt32, before: Int) {
        count(session, records[session].subscriptions.byteCount - before)
    }

    /// Counts the packet identifiers of QoS 2 that a persistent session keeps while its client is
    /// offline, from the disconnection to the next connection.
    package mutating func countIdentifiers(of session: UInt32, areKept: Bool) {
        guard records[session].isPersistent else { return }
        let size = SessionBytes.of(records[session].inbound)
        count(session, areKept ? size : -size)
    }

    // MARK: Expiry

    /// Sets the time at which an offline client's session expires.
    package mutating func scheduleExpiry(_ session: UInt32, at time: MonotonicTime) {
        let handle = Handle(index: session, generation: records[session].generation)
        records[session].setExpiryTimer(expiries.schedule(handle.packed, at: time))
    }

    package mutating func cancelExpiry(_ session: UInt32) {
        let timer = records[session].expiryTimer
        guard timer != noIndex else { return }
        expiries.cancel(timer)
        records[session].setExpiryTimer(noIndex)
    }

    /// The next expired session; the caller removes it.
    package mutating func popExpired(now: MonotonicTime) -> UInt32? {
        while let payload = expiries.popExpired(now: now) {
            let handle = Handle(packed: payload)
            guard isCurrent(handle) else { continue }
            records[handle.index].setExpiryTimer(noIndex)
            return handle.index
        }
        return nil
    }

    package var nextExpiry: MonotonicTime? { expiries.nextDeadline }

    // MARK: Lost messages

    /// Counts a lost message of the session.
    package mutating func countDrop(_ session: UInt32, _ reason: DropReason) {
        if records[session].drops == noIndex {
            records[session].setDrops(drops.insert(SessionDropCounts()))
        }
        let place = records[session].drops
        drops[place].add(reason)
    }

    /// The messages that a session has lost since it was created.
    package func drops(of session: UInt32) -> SessionDropCounts {
        let place = records[session].drops
        return place == noIndex ? SessionDropCounts() : drops[place]
    }

    // MARK: Messages that wait for a commit

    /// Has ``takeAwaitingCommit(_:)`` return the session, whose next message waits for a commit.
    package mutating func awaitCommit(_ session: UInt32) {
        if records[session].setAwaitsCommit(true) { awaitingCommit.append(session) }
    }

    /// Moves the sessions whose next message waited for a commit to the end of a list, in the order of
    /// waiting.
    package mutating func takeAwaitingCommit(_ sessions: inout RingBuffer<UInt32>) {
        for session in awaitingCommit.contents {
            _ = records[session].setAwaitsCommit(false)
            if records[session].generation != 0 { sessions.append(session) }
        }
        awaitingCommit.removeAll()
    }

    // MARK: Reports

    package func identifier(of session: UInt32) -> [UInt8] {
        records[session].clientID.array
    }
}

/// Counts of one session's lost messages by reason.
package typealias SessionDropCounts = DropCounts<UInt32>
