import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// One shard of the broker, without sockets: bytes, times and completions go in; output, writes and
/// requests to close come out.
///
/// It shares nothing, so a process may run several. The shard is a composition of the parts below;
/// each keeps its state private and does not know the shard. The shard's methods are the flows
/// across parts, a file each: a connection's packets to their session (`Shard+Packets`,
/// `Shard+Open`), and a message to its receivers, whose answers are counted before it is
/// acknowledged (`Shard+Route`, `Shard+Deliver`). A flow calls only files below its own, in an order
/// that a test of the architecture holds. `Shard+Turn` defines the order of a turn.
public struct Shard: ~Copyable {
    /// Never read. Makes the shard address-only: methods that do not mutate get its address,
    /// instead of a copy (2 KB) before each call that is not inlined.
    private let addressOnly: any Sendable = ()
    package var context: ShardContext
    package var connections: Connections
    package var logins: Logins
    /// What clients of MQTT 5.0 have beyond others.
    package var clients5: Clients5
    package var filterRequests = FilterRequests()
    package var takeOvers = TakeOverDamper()
    package var sessions: Sessions
    /// What sessions of clients of MQTT 5.0 have beyond others.
    package var terms = AllSessionTerms()
    package var delayedWills: DelayedWills
    package var expiries: Expiries
    package var endedSessions = EndedSessions()
    package var subscriptions: Subscriptions
    package var handOvers = HandOvers()
    package var retained: RetainedStore
    package var walks: RetainedWalks
    package var rights: Rights
    package var rechecks = QueueRechecks()
    package var bans: Bans
    package var userDisconnects = UserDisconnects()
    package var drain = ConnectionDrain()
    package var commits: Commits
    /// The features, which are told of what happens here.
    package let followers: any Followers
    /// When they have work in a turn.
    let agenda: FollowerAgenda
    /// The first eight bytes of the topics that features read; 0 for none.
    let readPrefix: UInt64
    package var dropReports = DropReports()
    /// The publisher whose match is made in slices; `nil` for none.
    package var matchPublisher: MatchPublisher?
    package var system: SystemTopics
    package var turn = TurnMachine()
    /// CONNECTs whose passwords or tokens must be checked.
    package var authentications: [AuthenticationRequest] = []
    /// Sessions being restored during a start.
    package var restoration = Restoration()
    /// Sessions whose next message waited for a commit, while they are processed.
    package var committed = RingBuffer<UInt32>()
    /// True when passwords or tokens are checked; otherwise user names are unproven.
    package let verifiesPasswords: Bool
    /// True when logins are checked of clients, too, whose certificates name them.
    package let asksBeforeCertificates: Bool
    /// By listener: true when clients without a proven user name may connect.
    package let allowsAnonymous: [Bool]

    /// `seed` is for hashes and generated client identifiers, and must be random; `followers` are
    /// those of this shard alone.
    package init(
        followers: any Followers, limits: BrokerLimits, allowsAnonymous: [Bool],
        systemTopicInterval: Duration,
        store: any Store, verifiesPasswords: Bool, asksBeforeCertificates: Bool = false,
        access: AccessRules? = nil, bans: BanTable? = nil, seed: UInt64, now: MonotonicTime,
        wallClockMs: Int64
    ) {
        let hash = KeyedHash(seed: seed)
        context = ShardContext(
            limits: limits, listenerCount: allowsAnonymous.count, now: now,
            wallClockMs: wallClockMs, hash: hash)
        connections = Connections(now: now)
        logins = Logins(now: now)
        clients5 = Clients5(pool: context.pool)
        delayedWills = DelayedWills(now: now)
        sessions = Sessions(hash: hash, seed: seed, now: now)
        expiries = Expiries(wallClockMs: wallClockMs, pool: context.pool)
        subscriptions = Subscriptions(hash: hash, pool: context.pool)
        retained = RetainedStore(hash: hash, pool: context.pool)
        walks = RetainedWalks(hash: hash, pool: context.pool)
        self.followers = followers
        agenda = followers.agenda
        readPrefix = Self.firstBytes(of: followers.readPrefix)
        rights = Rights(access)
        self.bans = Bans(bans)
        commits = Commits(store: store)
        system = SystemTopics(
            interval: systemTopicInterval, now: now, wallClockMs: wallClockMs)
        self.verifiesPasswords = verifiesPasswords
        self.asksBeforeCertificates = asksBeforeCertificates
        self.allowsAnonymous = allowsAnonymous
    }

    // MARK: Context

    public var pool: BytePool { context.pool }
    public var hash: KeyedHash { context.hash }
    public var counters: BrokerCounters {
        _read { yield context.counters }
        _modify { yield &context.counters }
    }
    public var limits: BrokerLimits {
        _read { yield context.limits }
        _modify {
            agenda.isStirred = true
            yield &context.limits
        }
    }
    public var now: MonotonicTime { context.now }
    public var wallClockMs: Int64 { context.wallClockMs }
    /// True when the log shows what clients wait for.
    public var reportsWaiting: Bool {
        get { context.notices.reportsWaiting }
        set { context.notices.reportsWaiting = newValue }
    }
    /// True when someone wants to know of connections and their ends.
    public var reportsLifecycle: Bool {
        get { context.notices.reportsLifecycle }
        set { context.notices.reportsLifecycle = newValue }
    }
    /// Figures that only the shard's owner knows.
    public var outside = OutsideFigures()

    // MARK: Connections, as the sockets' owner names them

    /// Adds an accepted connection and starts its CONNECT deadline. Connections from one peer
    /// address share the key `origin`; 0 when it is unknown.
    public mutating func open(_ handle: Handle, listener: Int, origin: UInt32 = 0) {
        connections.open(
            handle, listener: listener, origin: origin, now: context.now,
            deadline: context.now.advanced(
                byMilliseconds: context.limits.connectTimeout.wholeMilliseconds))
        context.counters.opened(listener: UInt8(truncatingIfNeeded: listener))
    }

    /// True until the connection is closed.
    public func isCurrent(_ handle: Handle) -> Bool { connections.isCurrent(handle) }

    /// The key of a connection's address; 0 when it is unknown.
    public func origin(of handle: Handle) -> UInt32 {
        connections.isCurrent(handle) ? connections[handle].origin : 0
    }

    /// Sets a connection's address once it is known.
    public mutating func setOrigin(_ key: UInt32, of handle: Handle) {
        if connections.isCurrent(handle) { connections[handle].origin = key }
    }

    /// The open connection of a client, and the user name of its session; `nil` for one that is
    /// offline or unknown.
    public func connection(ofClient identifier: [UInt8]) -> (handle: Handle, userName: [UInt8]?)? {
        guard let session = identifier.withUnsafeBytes({ sessions.find($0) }),
            let handle = sessions[session].connection, connections[handle].machine.isOpen
        else { return nil }
        return (handle, sessions[session].claimedUserName)
    }

    /// The listener that accepted a connection.
    public func listener(of handle: Handle) -> Int { Int(connections[handle].listener) }

    /// Sets the user name that the client's TLS certificate proved. CONNECT then needs no password,
    /// and its user name is ignored, unless another source of logins is asked before.
    public mutating func identify(_ handle: Handle, _ userName: [UInt8]) {
        guard connections.isCurrent(handle) else { return }
        let bytes = SharedBytes(count: userName.count, pool: pool)
        userName.withUnsafeBytes { name in
            if let base = name.baseAddress {
                bytes.bytes.copyMemory(from: base, byteCount: name.count)
            }
        }
        connections[handle].machine.identify(bytes, pool: pool)
    }

    /// True until a connection's CONNECT has been accepted.
    public func isNewcomer(_ handle: Handle) -> Bool {
        connections.isCurrent(handle) && connections[handle].machine.isNewcomer
    }

    /// True for a connection whose client speaks MQTT 5.0; false before its CONNECT.
    public func speaks5(_ handle: Handle) -> Bool {
        connections.isCurrent(handle) && connections[handle].outlet.speaks5
    }

    /// True until a connection's CONNECT has come.
    public func awaitsConnect(_ handle: Handle) -> Bool {
        connections.isCurrent(handle) && connections[handle].machine.isAwaitingConnect
    }

    /// True when a connection's CONNECT waits for a take-over or for the store.
    public func isConnectWaiting(_ handle: Handle) -> Bool {
        guard connections.isCurrent(handle) else { return false }
        let connection = connections[handle]
        return connection.machine.isDelayed
            || (connection.intake.awaitsStore && connection.session == noIndex)
    }

    /// True when the connection's input must wait until the connection is resumed.
    public func holdsInput(_ handle: Handle) -> Bool {
        connections.isCurrent(handle)
            && (connections[handle].intake.isPaused || connections[handle].machine.holdsInput)
    }

    /// True when the connection's next packet waits for a later turn, which follows at once.
    public func awaitsTurn(_ handle: Handle) -> Bool {
        connections.isCurrent(handle) && connections[handle].intake.awaitsTurn
    }

    /// True when packets, output or the ends of connections wait for the next turn.
    public var hasTurnWaiters: Bool {
        connections.hasUnsent || connections.turnWaiterCount > 0 || connections.hasEnding
            || connections.hasReleased || committed.count > 0 || system.isPublishing
    }

    /// True when this turn's work is spent: of what is read now, only small packets are handled.
    public var isTurnSpent: Bool { context.budget.isSpent }

    /// Reports that the socket failed or reached its end.
    public mutating func lost(_ handle: Handle, _ reason: CloseReason) {
        if connections.isLive(handle) { end(handle, reason) }
    }

    /// Calls `body` with the connection's output, for sending.
    @inline(__always)
    public mutating func withOutput<Result>(
        of handle: Handle, _ body: (inout OutputQueue) -> Result
    ) -> Result {
        connections[handle].outlet.withOutput(body)
    }

    /// Frees the output of a connection that lingered after its close.
    public mutating func discardOutput(_ handle: Handle) {
        connections.discardOutput(handle, pool: pool)
    }

    /// Ends the connection at the end of the turn.
    package mutating func end(
        _ handle: Handle, _ reason: CloseReason, opening: ForeignProtocol? = nil
    ) {
        connections.end(handle, reason, opening: opening, pool: context.pool)
    }
}
