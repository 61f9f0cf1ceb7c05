import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// One shard of the broker without its sockets: bytes, times and completions go in; output, writes and
/// requests to close come out.
///
/// It owns what it touches and shares nothing, so a process may run several. The shard is a composition:
/// each part below keeps its state to itself and knows nothing of the shard. The shard's own methods are the
/// flows that cross parts, a file each: a connection's packets on their way to the owner of its session
/// (`Shard+Packets`, `Shard+Connect`), and a message on its way to the owners of its receivers, whose
/// answers are counted before it is acknowledged (`Shard+Route`, `Shard+Deliver`). The order of a turn
/// stands in `Shard+Turn`.
package struct Shard: ~Copyable {
    /// Never read. It makes the shard address-only: methods that do not mutate get its address, where
    /// the compiler would copy the whole struct (2 KB) before each call that it does not inline.
    private let addressOnly: any Sendable = ()
    var context: ShardContext
    var connections: Connections
    var takeOvers = TakeOverDamper()
    var sessions: Sessions
    var endedSessions = EndedSessions()
    var subscriptions: Subscriptions
    var handOvers = HandOvers()
    var retained: RetainedStore
    var walks = RetainedWalks()
    var rights: Rights
    var commits: Commits
    var requests = AdminRequests()
    var system: SystemTopics
    var turn = TurnMachine()
    /// CONNECTs whose passwords are to be checked.
    var authentications: [AuthenticationRequest] = []
    /// Sessions that are restored while the store is loaded.
    var restoration = Restoration()
    /// Sessions whose next message waited for a commit, while they are looked at again.
    var committed = GrowableBuffer<UInt32>()
    /// Whether passwords are checked at all; without a password file user names are taken as given.
    let verifiesPasswords: Bool
    /// By listener: whether clients without a proven user name may connect.
    let allowsAnonymous: [Bool]

    /// `seed` feeds hashes and generated client identifiers; draw it at random.
    package init(
        limits: BrokerLimits, allowsAnonymous: [Bool], systemTopicInterval: Duration,
        store: any Store, verifiesPasswords: Bool, access: AccessRules? = nil, seed: UInt64,
        now: MonotonicTime, wallClockMs: Int64
    ) {
        let hash = KeyedHash(seed: seed)
        context = ShardContext(limits: limits, now: now, wallClockMs: wallClockMs, hash: hash)
        connections = Connections(now: now)
        sessions = Sessions(hash: hash, seed: seed, now: now)
        subscriptions = Subscriptions(hash: hash, pool: context.pool)
        retained = RetainedStore(hash: hash, pool: context.pool)
        rights = Rights(access)
        commits = Commits(store: store)
        system = SystemTopics(
            interval: systemTopicInterval, now: now, wallClockMs: wallClockMs)
        self.verifiesPasswords = verifiesPasswords
        self.allowsAnonymous = allowsAnonymous
    }

    // MARK: Context

    package var pool: BytePool { context.pool }
    package var hash: KeyedHash { context.hash }
    package var counters: BrokerCounters {
        _read { yield context.counters }
        _modify { yield &context.counters }
    }
    package var limits: BrokerLimits {
        _read { yield context.limits }
        _modify { yield &context.limits }
    }
    package var now: MonotonicTime { context.now }
    package var wallClockMs: Int64 { context.wallClockMs }
    /// Whether the lifecycle of connections is reported, because somebody reads about it.
    package var reportsLifecycle: Bool {
        get { context.notices.reportsLifecycle }
        set { context.notices.reportsLifecycle = newValue }
    }
    /// The figures that the shard does not know itself.
    package var outside = OutsideFigures()

    // MARK: Connections, as the sockets' owner names them

    /// A connection was accepted; its CONNECT must come within the deadline. `origin` is a key of the
    /// peer's address, which connections from the same address share; 0 when it is not known.
    package mutating func open(_ handle: Handle, listener: Int, origin: UInt32 = 0) {
        connections.open(
            handle, listener: listener, origin: origin, now: context.now,
            deadline: context.now.advanced(
                byMilliseconds: context.limits.connectTimeout.wholeMilliseconds))
        context.counters.connectionsOpened += 1
    }

    /// The key of a connection's address; 0 for none.
    package func origin(of handle: Handle) -> UInt32 {
        connections.isCurrent(handle) ? connections[handle].origin : 0
    }

    /// A connection's address has become known.
    package mutating func setOrigin(_ key: UInt32, of handle: Handle) {
        if connections.isCurrent(handle) { connections[handle].origin = key }
    }

    /// The listener that accepted a connection.
    package func listener(of handle: Handle) -> Int { Int(connections[handle].listener) }

    /// The client's TLS certificate names its user, and proves it: the CONNECT needs no password, and a
    /// user name in it does not count.
    package mutating func identify(_ handle: Handle, _ userName: [UInt8]) {
        guard connections.isCurrent(handle) else { return }
        let bytes = SharedBytes(count: userName.count, pool: pool)
        userName.withUnsafeBytes { name in
            if let base = name.baseAddress {
                bytes.bytes.copyMemory(from: base, byteCount: name.count)
            }
        }
        connections[handle].machine.identify(bytes, pool: pool)
    }

    /// Whether a connection's CONNECT has to wait, to take over from another one or for the store.
    package func isConnectWaiting(_ handle: Handle) -> Bool {
        guard connections.isCurrent(handle) else { return false }
        let connection = connections[handle]
        return connection.machine.isDelayed
            || (connection.intake.awaitsStore && connection.session == noIndex)
    }

    /// Whether the connection's input has to wait: until it is resumed, reading it gains nothing.
    package func holdsInput(_ handle: Handle) -> Bool {
        connections.isCurrent(handle)
            && (connections[handle].intake.isPaused || connections[handle].machine.holdsInput)
    }

    /// The socket failed or reached its end.
    package mutating func lost(_ handle: Handle, _ reason: CloseReason) {
        if connections.isLive(handle) { end(handle, reason) }
    }

    /// The socket took all output that it had refused: messages that wait in the session may go on.
    package mutating func drained(_ handle: Handle) {
        guard connections.isCurrent(handle) else { return }
        connections[handle].outlet.noteDrained()
        resumeIfPossible(handle)
        let session = connections[handle].session
        guard session != noIndex else { return }
        if connections[handle].machine.setThrottled(false) { pump(session) }
        resumeRetained(session)
    }

    /// Runs a body over the connection's output, for sending.
    @inline(__always)
    package mutating func withOutput<Result>(
        of handle: Handle, _ body: (inout OutputQueue) -> Result
    ) -> Result {
        connections[handle].outlet.withOutput(body)
    }

    /// Frees the output of a connection that was closed after its output; the sockets' owner is done with it.
    package mutating func discardOutput(_ handle: Handle) {
        connections.discardOutput(handle, pool: pool)
    }

    /// Ends the connection at the end of the turn.
    mutating func end(
        _ handle: Handle, _ reason: CloseReason, opening: ForeignProtocol? = nil
    ) {
        connections.end(handle, reason, opening: opening, pool: context.pool)
    }
}
