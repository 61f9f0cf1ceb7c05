import Authorization
import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// One shard of the broker without its sockets: bytes, times and completions go in; output, writes and
/// requests to close come out.
///
/// It owns what it touches and shares nothing, so a process may run several. The glue around it
/// (``BrokerLoop``) calls, within a turn: ``open(_:listener:origin:)``, ``receive(_:_:)``, ``lost(_:_:)`` for what
/// the sockets say; ``expireTimers()``; ``submitWrites()``; ``takeCompletions()``; then it sends what
/// ``takeDirty()`` names and closes what ``takeClosing()`` names.
package struct Shard: ~Copyable {
    /// Never read. It makes the shard address-only: methods that do not mutate get its address, where
    /// the compiler would copy the whole struct (2 KB) before each call that it does not inline.
    private let addressOnly: any Sendable = ()
    /// New limits bind what happens from then on: a queue that has become too long gives up messages
    /// when the next one comes, a keep alive holds until its client connects again.
    package var settings: BrokerLimits
    /// By listener: whether clients without a user name are let in.
    let allowsAnonymous: [Bool]
    let store: any Store
    /// Persistent sessions are the store's: memory holds a window of their queues.
    let isDurable: Bool
    /// A test ends the process at a place of its choice.
    let isRigged = Failpoint.isArmed
    /// Whether passwords are checked at all; without a password file user names are taken as given.
    let verifiesPasswords: Bool
    /// Who may do what; `nil` allows everything.
    var access: AccessRules?
    /// Counts the rules that there have been; never 0.
    var accessGeneration: UInt32 = 1
    package let pool: BytePool
    let hash: KeyedHash

    var connections = Slab<Connection>()
    var sessions = Slab<Session>()
    var sessionIndex = HashIndex()
    /// Of the sessions that lost something: few do.
    var sessionDrops = Slab<SessionDropCounts>()
    var trie: SubscriptionTrie
    var shared: SharedSubscriptions
    var choices = GrowableBuffer<SharedSubscriptions.Choice>()
    /// Messages that wait to be handed over to other members, in order.
    var handOvers: [HandOver] = []
    /// How many more this turn hands over.
    var handOversLeft = Shard.handOversPerTurn
    var retained: RetainedMessages
    var timers: TimerWheel
    var writes: WriteBatch
    var commits = CommitLog()

    /// Set by the glue at the start of a turn.
    package var now: MonotonicTime
    package var wallClockMs: Int64

    package internal(set) var counters = BrokerCounters()
    package var outside = OutsideFigures()
    var system: SystemTopics
    var totals = QueueTotals()
    var persistentSessions = 0
    var activeConnections = 0
    var pendingConnections = 0
    var generation: UInt32 = 0
    var sessionNumber: UInt64 = 0
    var messageNumber: UInt64 = 0
    var identifierSeed: UInt64
    var sequences: [[UInt8]: UInt64] = [:]
    var pendingReplies: [UInt64: PendingReply] = [:]
    var replyNumber: UInt64 = 0

    var dirty = GrowableBuffer<Handle>()
    var doomed: [Doomed] = []
    var closing: [Closing] = []
    var resumed: [Handle] = []
    var overdue: [Handle] = []
    var awaitingCommit = GrowableBuffer<UInt32>()
    /// Connections whose CONNACK waits for commits before its own.
    var heldOpenings: [(ticket: UInt64, handle: Handle, sessionPresent: Bool)] = []
    /// The former list, while it is worked through.
    var stillAwaiting = GrowableBuffer<UInt32>()
    /// By session; a job ends with its session's connection.
    var retainedJobs: [UInt32: RetainedJob] = [:]
    /// Sessions whose jobs can go on, in turn.
    var retainedTurns: [UInt32] = []
    var authenticationRequests: [AuthenticationRequest] = []
    /// Client identifiers that are fought over.
    var takeOvers = TakeOverDamper()
    /// Users whom their certificates name, until their CONNECT.
    var certificateUsers: [Handle: [UInt8]] = [:]
    var notices: [BrokerNotice] = []
    /// Messages that clients may not read, of which this turn has left word.
    var deliveriesReported: UInt8 = 0
    var completions: [ClosedRange<UInt64>] = []
    /// Reads of queues, to be submitted behind the turn's writes.
    var reads: [QueueRead] = []
    var slices: [QueueSlice] = []
    /// Sessions, by number, whose queue the store is reading: one read each, however often a client
    /// comes and goes.
    var readsUnderWay: Set<UInt64> = []
    /// Who asked meanwhile, by the session's number.
    var postponedLoads: [UInt64: Handle] = [:]
    /// Questions of the admin plane that wait for the store, by their number.
    var queueQuestions: [UInt64: QueueQuestion] = [:]
    /// Lists of clients that are being made, one after the other.
    var listings: [ClientListing] = []
    /// What was dropped while it was on its way from the store, by the session's number.
    var droppedWhileLoading: [UInt64: ClosedRange<UInt64>] = [:]
    /// Sessions that are over, and whose queues are still to be read.
    var endedSessions: [EndedSession] = []
    /// Those that the store is reading, by their number.
    var endedUnderWay: [UInt64: EndedSession] = [:]
    /// The store takes no new messages at present; whoever publishes one that it needs has to wait.
    var storeRefuses = false
    /// So much waits for the disk that whoever wants more stored has to wait; what is less than half of
    /// the bound ends it.
    var isStoreBehind = false
    var backlog = StoreBacklog()
    /// Who waits for the store, with the place in the order in which they go on.
    var awaitingStore: [Handle: UInt64] = [:]
    var awaitingStorePlace: UInt64 = 0
    /// Connections whose CONNACK leaves with the first part of their queue.
    var awaitingSlice: [Handle: Bool] = [:]
    /// The last group that changed a retained message of QoS 1 or 2.
    var retainedTicket: UInt64 = 0
    /// What is known only while the store is loaded.
    var restoration = Restoration()
    /// Connection lifecycle is reported only when somebody reads it.
    package var reportsLifecycle = false

    /// A connection that ends with the turn.
    struct Doomed {
        var handle: Handle
        var reason: CloseReason
        /// What its peer speaks instead of MQTT, if that is known.
        var opening: ForeignProtocol?
    }

    /// A connection that the glue has to close.
    package struct Closing: Sendable {
        package var connection: Handle
        /// Send what is in the output first, and let the peer read it.
        package var afterOutput: Bool
        /// As ``open(_:listener:origin:)`` got it.
        package var origin: UInt32
    }

    /// What all sessions are owed together.
    struct QueueTotals {
        var waiting = 0
        var waitingBytes = 0
        var inFlight = 0
    }

    struct PendingReply {
        var counts: PublishCounts
        var reply: Reply<PublishCounts>
    }

    /// `seed` feeds hashes and generated client identifiers; draw it at random.
    package init(
        settings: BrokerLimits, allowsAnonymous: [Bool], systemTopicInterval: Duration,
        store: any Store, verifiesPasswords: Bool,
        access: AccessRules? = nil, seed: UInt64, now: MonotonicTime, wallClockMs: Int64
    ) {
        self.settings = settings
        self.allowsAnonymous = allowsAnonymous
        self.store = store
        isDurable = store.isRecording
        self.verifiesPasswords = verifiesPasswords
        self.access = access
        self.now = now
        self.wallClockMs = wallClockMs
        pool = BytePool()
        hash = KeyedHash(seed: seed)
        identifierSeed = seed
        trie = SubscriptionTrie(hash: hash, pool: pool)
        shared = SharedSubscriptions(hash: hash, pool: pool)
        retained = RetainedMessages(hash: hash, pool: pool)
        timers = TimerWheel(now: now)
        writes = WriteBatch(isRecording: store.isRecording)
        system = SystemTopics(
            interval: systemTopicInterval, now: now, wallClockMs: wallClockMs)
    }

    // MARK: What the sockets say

    /// A connection was accepted; its CONNECT must come within the deadline. `origin` is a key of the
    /// peer's address, which those have in common that share the address; 0 when it is not known.
    package mutating func open(_ handle: Handle, listener: Int, origin: UInt32 = 0) {
        var connection = Connection()
        connection.generation = handle.generation
        connection.listener = UInt8(truncatingIfNeeded: listener)
        connection.origin = origin
        connection.lastPacket = now
        connection.timer = timers.schedule(
            TimerPayload.connection(handle).encoded,
            at: now.advanced(byMilliseconds: settings.connectTimeout.wholeMilliseconds))
        connections.place(connection, at: handle.index)
        counters.connectionsOpened += 1
        pendingConnections += 1
    }

    /// The key of a connection's address; 0 for none.
    package func origin(of handle: Handle) -> UInt32 {
        isCurrent(handle) ? connections[handle.index].origin : 0
    }

    /// Whether a connection's CONNECT has to wait, to take over from another one or for the store.
    package func isConnectWaiting(_ handle: Handle) -> Bool {
        guard isCurrent(handle) else { return false }
        let connection = connections[handle.index]
        return connection.machine.isDelayed
            || (connection.awaitsStore && connection.session == noIndex)
    }

    /// A connection's address has become known.
    package mutating func setOrigin(_ key: UInt32, of handle: Handle) {
        if isCurrent(handle) { connections[handle.index].origin = key }
    }

    /// The listener that accepted a connection.
    package func listener(of handle: Handle) -> Int { Int(connections[handle.index].listener) }

    /// The certificate that a connection showed names its user, and proves it: its CONNECT needs no password, and a
    /// user name in it does not count.
    package mutating func identify(_ handle: Handle, _ userName: [UInt8]) {
        guard isCurrent(handle) else { return }
        certificateUsers[handle] = userName
    }

    /// Handles all complete packets in `bytes`; returns how many bytes were consumed. The rest is
    /// offered again, with more behind it or after ``takeResumed()`` named the connection.
    package mutating func receive(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) -> Int {
        guard isCurrent(handle) else { return bytes.count }
        var offset = 0
        while offset < bytes.count {
            guard !connections[handle.index].isDoomed else { return bytes.count }
            guard !connections[handle.index].machine.holdsInput,
                !connections[handle.index].isPaused
            else { break }
            let limit =
                connections[handle.index].machine.isAwaitingConnect
                ? settings.maxConnectPacketBytes : settings.maxPacketBytes
            do throws(MalformedPacket) {
                let span = bytes.bytes
                switch try PacketDecoder.frame(span, at: offset, maximumSize: limit) {
                case .incomplete:
                    // Anything but a CONNECT is refused as early as its first byte.
                    if connections[handle.index].machine.isAwaitingConnect,
                        bytes[offset] >> 4 != PacketType.connect.rawValue
                    {
                        doomStranger(handle, .firstPacketNotConnect, bytes, offset)
                        return bytes.count
                    }
                    return offset
                case .frame(let frame):
                    if holdsForStore, mustWaitForStore(handle, frame, bytes) { return offset }
                    counters.packetsReceived += 1
                    try process(handle, frame, bytes)
                    offset = frame.packet.end
                    // Deadlines count complete packets, not bytes [MQTT-3.1.2-24].
                    connections[handle.index].lastPacket = now
                }
            } catch {
                // No packet begins like a handshake record of TLS (RFC 8446, section 5.1): a CONNECT's
                // reserved bits are 0 [MQTT-2.2.2-1].
                if connections[handle.index].machine.isAwaitingConnect,
                    bytes[offset] == Self.tlsHandshakeRecord
                {
                    doom(handle, .tlsOnPlainListener)
                } else {
                    refuse(handle, error, bytes, offset)
                }
                return bytes.count
            }
        }
        return offset
    }

    /// The socket failed or reached its end.
    package mutating func lost(_ handle: Handle, _ reason: CloseReason) {
        guard isCurrent(handle), !connections[handle.index].isDoomed else { return }
        doom(handle, reason)
    }

    /// The socket took all output that it had refused: what waited in the session may go on.
    package mutating func drained(_ handle: Handle) {
        guard isCurrent(handle) else { return }
        connections[handle.index].resentBytes = 0
        resumeIfPossible(handle)
        let session = connections[handle.index].session
        guard session != noIndex else { return }
        if connections[handle.index].isThrottled {
            connections[handle.index].isThrottled = false
            pump(session)
        }
        resumeRetained(session)
    }

    // MARK: What the glue takes

    /// One connection whose output has to be sent in this turn.
    package mutating func takeDirty() -> Handle? {
        while let handle = dirty.popLast() {
            guard isCurrent(handle) else { continue }
            connections[handle.index].isDirty = false
            return handle
        }
        return nil
    }

    package mutating func takeClosing() -> [Closing] { Self.take(&closing) }
    /// Connections whose held-back input counts from now on.
    package mutating func takeResumed() -> [Handle] { Self.take(&resumed) }
    /// Whether the connection's input has to wait: until it is resumed, reading it gains nothing.
    package func holdsInput(_ handle: Handle) -> Bool {
        isCurrent(handle)
            && (connections[handle.index].isPaused
                || connections[handle.index].machine.holdsInput)
    }
    /// Connections whose keep alive is over unless their socket holds a packet: read, then ``judge(_:)``.
    package mutating func takeOverdue() -> [Handle] { Self.take(&overdue) }
    package mutating func takeAuthenticationRequests() -> [AuthenticationRequest] {
        Self.take(&authenticationRequests)
    }
    package mutating func takeNotices() -> [BrokerNotice] {
        deliveriesReported = 0
        return Self.take(&notices)
    }

    /// Leaves word of what one client brought about, of which it may bring about very much in a turn:
    /// beyond the bound nothing is said, and the counters miss none.
    mutating func note(_ notice: BrokerNotice) {
        guard notices.count < Self.maxNotices else { return }
        notices.append(notice)
    }

    /// Each may hold an identifier of 64 KiB.
    private static var maxNotices: Int { 1_000 }

    /// Runs a body over the connection's output, for sending.
    package mutating func withOutput<Result>(
        of handle: Handle, _ body: (inout OutputQueue) -> Result
    ) -> Result {
        body(&connections[handle.index].output)
    }

    /// Frees the output of a connection that was closed after its output; the glue is done with it.
    package mutating func discardOutput(_ handle: Handle) {
        connections[handle.index].output.removeAll(in: pool)
    }

    /// The clean-up that a turn ends with: connections that broke a rule, and retained messages in slices.
    package mutating func finishTurn() {
        closeDoomed()
        if !isStoreBehind { runHandOvers() }
        runRetainedJobs()
        closeDoomed()
    }

    /// Closes connections whose socket failed while the turn's output was sent; their wills leave with
    /// the next turn.
    package mutating func closeFailed() { closeDoomed() }

    /// When the next turn is due without any event; `nil` when nothing waits for a time.
    package var nextDeadline: MonotonicTime? {
        let hasWork =
            !writes.isEmpty || !reads.isEmpty || !dirty.isEmpty || !doomed.isEmpty
            || !retainedTurns.isEmpty
            || !resumed.isEmpty || !listings.isEmpty || canReadEnded
            || (!handOvers.isEmpty && !isStoreBehind)
        guard !hasWork else { return now }
        guard let refresh = system.deadline else { return timers.nextDeadline }
        return min(timers.nextDeadline ?? refresh, refresh)
    }

    private static func take<Element>(_ array: inout [Element]) -> [Element] {
        guard !array.isEmpty else { return [] }
        var taken: [Element] = []
        swap(&taken, &array)
        return taken
    }

    // MARK: Shared by the parts

    func isCurrent(_ handle: Handle) -> Bool {
        handle.index < connections.endIndex
            && connections[handle.index].generation == handle.generation
    }

    func isCurrent(session handle: Handle) -> Bool {
        handle.index < sessions.endIndex
            && sessions[handle.index].generation == handle.generation
    }

    func handle(ofSession index: UInt32) -> Handle {
        Handle(index: index, generation: sessions[index].generation)
    }

    mutating func markDirty(_ handle: Handle) {
        guard !connections[handle.index].isDirty else { return }
        connections[handle.index].isDirty = true
        dirty.append(handle)
    }

    /// Ends the connection at the end of the turn: closing publishes wills, and must not happen while
    /// something else is being routed.
    mutating func doom(
        _ handle: Handle, _ reason: CloseReason, opening: ForeignProtocol? = nil
    ) {
        guard !connections[handle.index].isDoomed else { return }
        connections[handle.index].isDoomed = true
        doomed.append(Doomed(handle: handle, reason: reason, opening: opening))
    }

    /// Ends a connection whose first packet, which begins at `offset`, is no CONNECT.
    private mutating func doomStranger(
        _ handle: Handle, _ violation: ProtocolViolation, _ bytes: UnsafeRawBufferPointer,
        _ offset: Int
    ) {
        doom(
            handle, .protocolViolation(violation),
            opening: ForeignProtocol(
                beginning: UnsafeRawBufferPointer(rebasing: bytes[offset...])))
    }

    private mutating func process(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(MalformedPacket) {
        if frame.type == .connect {
            // What comes second is a violation whatever it says.
            try receiveConnect(handle, frame, bytes)
            return
        }
        switch connections[handle.index].machine.receive(frame.type) {
        case .process: break
        case .ignore: return
        case .close(.firstPacketNotConnect):
            doomStranger(handle, .firstPacketNotConnect, bytes, frame.packet.start)
            return
        case .close(let violation):
            doom(handle, .protocolViolation(violation))
            return
        }
        // A malformed DISCONNECT is a violation, so the will is published [MQTT-3.14.1-1].
        switch try PacketDecoder.decode(frame, bytes.bytes) {
        case .publish(let publish): receivePublish(handle, publish, frame, bytes)
        case .puback(let identifier): receivePuback(handle, identifier)
        case .pubrec(let identifier): receivePubrec(handle, identifier)
        case .pubrel(let identifier): receivePubrel(handle, identifier)
        case .pubcomp(let identifier): receivePubcomp(handle, identifier)
        case .subscribe(let subscribe): receiveSubscribe(handle, subscribe, frame, bytes)
        case .unsubscribe(let unsubscribe):
            receiveUnsubscribe(handle, unsubscribe, frame, bytes)
        case .pingreq:
            // [MQTT-3.12.4-1]
            let output = connections[handle.index].output.append(2, pool: pool)
            output.storeBytes(of: 0xD0, as: UInt8.self)
            output.storeBytes(of: 0, toByteOffset: 1, as: UInt8.self)
            counters.otherPacketsSent += 1
            markDirty(handle)
            limitOutput(handle)
        case .disconnect:
            doom(handle, .disconnect)
        case .connect, .connack, .suback, .unsuback, .pingresp:
            preconditionFailure("the connection machine let \(frame.type) pass")
        }
    }

    private static var tlsHandshakeRecord: UInt8 { 22 }

    /// A malformed packet closes its connection; only an unsupported level is answered [MQTT-3.1.2-2].
    private mutating func refuse(
        _ handle: Handle, _ error: MalformedPacket, _ bytes: UnsafeRawBufferPointer, _ offset: Int
    ) {
        guard connections[handle.index].machine.isAwaitingConnect else {
            doom(handle, .protocolViolation(.malformed(error)))
            return
        }
        if case .unsupportedProtocolLevel = error {
            refuse(
                handle, .unacceptableProtocolVersion, .unacceptableProtocolVersion, [],
                userName: nil)
        } else {
            doomStranger(handle, .malformed(error), bytes, offset)
        }
    }
}

/// What a timer stands for, in the 64 bits that the wheel keeps.
enum TimerPayload {
    case connection(Handle)
    case session(Handle)

    private static var sessionFlag: UInt64 { 1 << 63 }

    var encoded: UInt64 {
        switch self {
        case .connection(let handle): handle.packed
        case .session(let handle): handle.packed | Self.sessionFlag
        }
    }

    init(encoded: UInt64) {
        let handle = Handle(packed: encoded & ~Self.sessionFlag)
        self = encoded & Self.sessionFlag == 0 ? .connection(handle) : .session(handle)
    }
}
