import MQTTCodec
import Structures

/// What one session is owed, in order: first the in-flight window, then what waits behind it.
///
/// Messages are numbered by position. A packet identifier follows from its position
/// (``PacketIdentifier/init(position:)``), so it needs no allocator, finds its message in constant
/// time and survives a reconnect [MQTT-4.4.0-1]; identifiers count from 1 and none is in use twice,
/// because the queue never spans 65,535 positions.
/// ```
///   head            next to send           end
///    | sent  released  sent | waiting … waiting |
/// ```
/// A position that is done leaves a hole until the head passes it. An entry that waits for its
/// commit holds back all behind it, which keeps every order that a receiver could observe.
///
/// A queue that a store keeps holds a window in memory and knows of the rest only where it is: what
/// was sent and is not loaded (``storedInFlight``), and behind the window what waits (``stored``).
/// The owner loads both in order (``placeSent(_:pool:)``, ``placeWaiting(_:ticket:pool:)``).
public struct OutboundQueue: BitwiseCopyable {
    enum State: UInt8, BitwiseCopyable {
        /// Acknowledged, expired or dropped.
        case hole
        case waiting
        /// QoS 1: until its PUBACK. QoS 2: until its PUBREC.
        case sent
        /// QoS 2: PUBREC came; until its PUBCOMP. The message itself is gone [MQTT-4.3.3-1].
        case released
    }

    struct Entry: BitwiseCopyable {
        var message: Message?
        /// The commit that it waits for; 0 for none.
        var ticket: UInt64
        var state: State
        var qos: QoS
        var retain: Bool
        /// The shared subscription that chose this session; ``noIndex`` for none.
        var group: UInt32
    }

    /// A message as one receiver gets it.
    public struct Item: BitwiseCopyable {
        public var message: Message
        public var position: UInt64
        public var qos: QoS
        public var retain: Bool

        public var packetIdentifier: PacketIdentifier { PacketIdentifier(position: position) }
    }

    public enum Next {
        /// Sent from now on: for QoS 1 and 2 it stays in flight; for QoS 0 the caller owns the reference.
        case send(Item)
        /// The next message waits for its commit.
        case awaitsCommit
        /// Waits for an acknowledgement, or nothing is left.
        case nothing
    }

    public enum Resend {
        case publish(Item)
        case pubrel(PacketIdentifier)
    }

    public enum Received {
        case accepted(position: UInt64)
        /// The same acknowledgement came before, or a PUBREC for a message that was given up.
        case repeated
        case unknown
    }

    var ring: UnsafeMutablePointer<Entry>?
    var capacity: UInt32 = 0
    /// Positions from `head` to the next one to send.
    var sentSpan: UInt32 = 0
    /// Positions from `head` to the end of what is in memory.
    var span: UInt32 = 0
    var head: UInt64
    var loadedInFlight: UInt32 = 0
    /// In flight before the client went away, and only in the store since.
    public internal(set) var storedInFlight: UInt32 = 0
    /// In memory, behind what is in flight.
    public internal(set) var loadedWaiting: UInt32 = 0
    /// Only in the store, behind all that is in memory.
    public internal(set) var stored: UInt32 = 0
    /// The first of those, or the position that comes next.
    public internal(set) var firstStored: UInt64
    var loadedBytes: Int = 0
    var storedBytes: Int = 0

    /// The window never reaches this many positions, so identifiers stay unique.
    static var largestSpan: UInt32 { 65_535 }

    public init(firstPosition: UInt64 = 0) {
        head = firstPosition
        firstStored = firstPosition
    }

    /// A queue as a store kept it: `inFlight` messages below the position `horizon`, all from there to
    /// `end` waiting, together of `bytes`.
    public init(horizon: UInt64, end: UInt64, inFlight: UInt32, bytes: Int) {
        head = horizon
        firstStored = horizon
        stored = UInt32(clamping: end - horizon)
        storedInFlight = inFlight
        storedBytes = stored > 0 ? bytes : 0
    }

    /// The position that the next message gets.
    public var end: UInt64 { firstStored + UInt64(stored) }
    public var isEmpty: Bool { span == 0 && stored == 0 && storedInFlight == 0 }
    /// True when no further position can be given before the oldest message is acknowledged.
    public var isFull: Bool { firstStored - head >= UInt64(Self.largestSpan) }
    public var inFlight: UInt32 { loadedInFlight + storedInFlight }
    /// All that was not sent yet.
    public var waiting: UInt32 { loadedWaiting + stored }
    /// The bytes of that; what was dropped from the store counts as average.
    public var waitingBytes: Int { loadedBytes + storedBytes }
    /// Whether new messages have to go behind others that are in the store only.
    public var isStoring: Bool { stored > 0 || storedInFlight > 0 }

    // MARK: Adding

    /// Appends a message, whose reference the queue takes over; the queue must not be full.
    public mutating func append(
        _ message: Message, qos: QoS, retain: Bool, ticket: UInt64, group: UInt32 = noIndex,
        pool: BytePool
    ) {
        precondition(!isFull, "a queue of \(span) positions takes no more")
        precondition(!isStoring, "a message would pass those in the store")
        push(
            Entry(
                message: message, ticket: ticket, state: .waiting, qos: qos, retain: retain,
                group: group), at: firstStored, pool)
        loadedWaiting += 1
        loadedBytes += message.count
        firstStored += 1
    }

    /// Gives up the oldest message that is not in flight; returns its position, or `nil` when all are.
    /// In memory only; see ``dropOldestStored()``.
    public mutating func dropOldestWaiting(pool: BytePool) -> UInt64? {
        skipHoles()
        guard sentSpan < span else { return nil }
        let position = head + UInt64(sentSpan)
        let message = takeWaiting(position)
        message?.release(in: pool)
        store(.hole, at: position)
        sentSpan += 1
        advanceHead(pool)
        return position
    }

    /// Moves what waits up behind what is in flight, over the holes that dropping left.
    ///
    /// Only messages that were never sent change their position, so no identifier in use changes.
    public mutating func closeHoles(pool: BytePool) {
        var end = sentSpan
        while end > 0, entry(at: head + UInt64(end - 1)).state == .hole { end -= 1 }
        let firstWaiting = sentSpan
        sentSpan = end
        for offset in firstWaiting..<span {
            let entry = entry(at: head + UInt64(offset))
            guard entry.state == .waiting else { continue }
            store(entry, at: head + UInt64(end))
            end += 1
        }
        span = end
        firstStored = head + UInt64(span)
        if span == 0 { releaseRing(pool) }
    }

    // MARK: Sending

    /// The next message that may leave, if the window of `limit` has room for it.
    ///
    /// `isCommitted` answers whether a ticket's commit has completed.
    public mutating func next(
        limit: UInt32, pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> Next {
        skipHoles()
        guard sentSpan < span else { return .nothing }
        let position = head + UInt64(sentSpan)
        var entry = entry(at: position)
        guard let message = entry.message else {
            preconditionFailure("position \(position) waits without a message")
        }
        guard entry.ticket == 0 || isCommitted(entry.ticket) else { return .awaitsCommit }
        let item = Item(message: message, position: position, qos: entry.qos, retain: entry.retain)
        if entry.qos == .atMostOnce {
            _ = takeWaiting(position)
            store(.hole, at: position)
            sentSpan += 1
            advanceHead(pool)
            return .send(item)
        }
        guard loadedInFlight < limit else { return .nothing }
        _ = takeWaiting(position)
        entry.state = .sent
        store(entry, at: position)
        sentSpan += 1
        loadedInFlight += 1
        return .send(item)
    }

    /// The message that ``next(limit:pool:isCommitted:)`` handed out last is given up: it expired.
    public mutating func abandon(_ item: Item, pool: BytePool) {
        if item.qos != .atMostOnce {
            loadedInFlight -= 1
            store(.hole, at: item.position)
            advanceHead(pool)
        }
        item.message.release(in: pool)
    }

    /// What is in flight, oldest first, for a client that came back [MQTT-4.4.0-1] [MQTT-4.6.0-1].
    public func forEachInFlight(_ body: (Resend) -> Void) {
        for offset in 0..<UInt64(sentSpan) {
            let position = head + offset
            let entry = entry(at: position)
            switch entry.state {
            case .sent:
                guard let message = entry.message else { continue }
                body(
                    .publish(
                        Item(
                            message: message, position: position, qos: entry.qos,
                            retain: entry.retain)))
            case .released:
                body(.pubrel(PacketIdentifier(position: position)))
            case .hole, .waiting:
                continue
            }
        }
    }

    // MARK: Acknowledgements

    /// PUBACK: a QoS 1 message is done.
    public mutating func acknowledge(
        _ identifier: PacketIdentifier, pool: BytePool
    ) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        let entry = entry(at: position)
        guard entry.state == .sent, entry.qos == .atLeastOnce else { return .unknown }
        finish(position, entry, pool)
        return .accepted(position: position)
    }

    /// PUBREC: the receiver owns a QoS 2 message; its PUBREL is owed until the PUBCOMP.
    public mutating func markReceived(
        _ identifier: PacketIdentifier, pool: BytePool
    ) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        var entry = entry(at: position)
        switch entry.state {
        case .released:
            return .repeated
        case .sent where entry.qos == .exactlyOnce:
            entry.message?.release(in: pool)
            entry.message = nil
            entry.state = .released
            store(entry, at: position)
            return .accepted(position: position)
        case .sent, .waiting, .hole:
            return .unknown
        }
    }

    /// PUBCOMP: a QoS 2 message is done.
    public mutating func complete(_ identifier: PacketIdentifier, pool: BytePool) -> Received {
        guard let position = position(of: identifier) else { return .unknown }
        let entry = entry(at: position)
        guard entry.state == .released else { return .unknown }
        finish(position, entry, pool)
        return .accepted(position: position)
    }

    public mutating func removeAll(in pool: BytePool) {
        for offset in 0..<UInt64(span) { entry(at: head + offset).message?.release(in: pool) }
        releaseRing(pool)
        head = end
        firstStored = head
        (span, sentSpan, loadedInFlight, loadedWaiting, loadedBytes) = (0, 0, 0, 0, 0)
        (stored, storedInFlight, storedBytes) = (0, 0, 0)
    }

    // MARK: The ring

    /// The position within the sent span that has this identifier.
    private func position(of identifier: PacketIdentifier) -> UInt64? {
        let first = UInt64(PacketIdentifier(position: head).rawValue)
        let offset = (UInt64(identifier.rawValue) + 65_535 - first) % 65_535
        return offset < UInt64(sentSpan) ? head + offset : nil
    }

    func entry(at position: UInt64) -> Entry {
        guard let ring else { preconditionFailure("position \(position) of an empty queue") }
        return ring[Int(position & UInt64(capacity - 1))]
    }

    func store(_ entry: Entry, at position: UInt64) {
        guard let ring else { preconditionFailure("position \(position) of an empty queue") }
        ring[Int(position & UInt64(capacity - 1))] = entry
    }

    mutating func takeWaiting(_ position: UInt64) -> Message? {
        let message = entry(at: position).message
        loadedWaiting -= 1
        loadedBytes -= message?.count ?? 0
        return message
    }

    private mutating func finish(_ position: UInt64, _ entry: Entry, _ pool: BytePool) {
        entry.message?.release(in: pool)
        store(.hole, at: position)
        loadedInFlight -= 1
        advanceHead(pool)
    }

    /// Puts an entry behind the window; positions between become holes.
    mutating func push(_ entry: Entry, at position: UInt64, _ pool: BytePool) {
        // An empty window begins where its first message stands.
        if span == 0 { head = position }
        while head + UInt64(span) < position { extend(.hole, pool) }
        extend(entry, pool)
    }

    private mutating func extend(_ entry: Entry, _ pool: BytePool) {
        if span == capacity { grow(pool) }
        store(entry, at: head + UInt64(span))
        span += 1
    }

    mutating func skipHoles() {
        while sentSpan < span, entry(at: head + UInt64(sentSpan)).state == .hole { sentSpan += 1 }
    }

    mutating func advanceHead(_ pool: BytePool) {
        while sentSpan > 0, entry(at: head).state == .hole {
            head += 1
            span -= 1
            sentSpan -= 1
        }
        if span == 0 { releaseRing(pool) }
    }

    private mutating func grow(_ pool: BytePool) {
        let larger = max(4, capacity * 2)
        let raw = pool.allocate(Int(larger) * MemoryLayout<Entry>.stride)
        let entries = raw.bindMemory(to: Entry.self, capacity: Int(larger))
        for offset in 0..<UInt64(span) {
            let position = head + offset
            (entries + Int(position & UInt64(larger - 1))).initialize(to: entry(at: position))
        }
        releaseRing(pool)
        ring = entries
        capacity = larger
    }

    mutating func releaseRing(_ pool: BytePool) {
        guard let ring else { return }
        pool.deallocate(
            UnsafeMutableRawPointer(ring), count: Int(capacity) * MemoryLayout<Entry>.stride)
        self.ring = nil
        capacity = 0
    }
}

extension OutboundQueue.Entry {
    static var hole: Self {
        Self(
            message: nil, ticket: 0, state: .hole, qos: .atMostOnce, retain: false, group: noIndex)
    }
}
