import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The state that belongs to a client identifier, with or without a connection (section 4.1).
///
/// A broker may have a million, most of them offline: the size of this record is most of their cost, so its
/// members stand in an order that leaves few gaps.
struct Session: BitwiseCopyable {
    private enum Presence: BitwiseCopyable {
        /// The client has this connection, whose CONNACK may not have left yet.
        case connected(Handle)
        /// The client is offline; the timer, if there is one, ends the session.
        case offline(expiryTimer: UInt32)
    }

    /// 0 while the record is unused.
    let generation: UInt32
    /// Clean session 0: the session outlives its connection.
    let isPersistent: Bool
    private(set) var hasUserName = false
    /// A password or a certificate proved the user name; one that is only claimed gives no rights.
    private(set) var isUserProven = false
    private(set) var version = Connect.Version.v3_1_1
    /// Names the session in the store; never reused.
    let number: UInt64
    private(set) var clientIdentifier: CompactBytes
    /// The session belongs to the client identifier and this user.
    private(set) var userName = CompactBytes()
    private var presence = Presence.offline(expiryTimer: noIndex)
    /// The session stands in the list of those whose next message waits for a commit.
    private(set) var awaitsCommit = false
    /// Messages of shared subscriptions may be in the session's queue in the store.
    private(set) var holdsShared = false
    private(set) var lastCloseReason: CloseReason.Kind?
    /// As the client asked, in seconds.
    private(set) var keepAlive: UInt16 = 0
    /// UNIX time in milliseconds at which the client connected, or went offline.
    private(set) var sinceMs: Int64 = 0
    /// The messages that the client is owed.
    var outbound = OutboundQueue()
    /// Packet identifiers of QoS 2 messages that the client has sent and not released.
    var inbound = InboundQoS2()
    /// The places of the session's subscriptions in the routing tables.
    var subscriptions = SessionSubscriptions()
    /// The access rules under which every message of the queue was put there; 0 when they are unknown.
    var accessGeneration: UInt32
    /// The place of the counts of lost messages in the table of ``Sessions``; ``noIndex`` while there are none.
    private(set) var drops: UInt32 = noIndex
    var publishesReceived: UInt64 = 0
    var publishesSent: UInt64 = 0
    var publishesAcknowledged: UInt64 = 0

    init(
        generation: UInt32, number: UInt64, isPersistent: Bool, accessGeneration: UInt32,
        clientIdentifier: UnsafeRawBufferPointer, user: SessionUser?, pool: BytePool
    ) {
        self.generation = generation
        self.number = number
        self.isPersistent = isPersistent
        self.accessGeneration = accessGeneration
        self.clientIdentifier = CompactBytes(clientIdentifier, pool: pool)
        if let user {
            hasUserName = true
            isUserProven = user.isProven
            userName = CompactBytes(user.name, pool: pool)
        }
    }

    /// The record of no session.
    private init() {
        (generation, number, isPersistent, accessGeneration) = (0, 0, false, 0)
        clientIdentifier = CompactBytes()
    }

    static var unused: Session { Session() }

    // MARK: Presence

    /// The client's connection; `nil` while it is offline.
    @inline(__always)
    var connection: Handle? {
        if case .connected(let handle) = presence { handle } else { nil }
    }

    /// The timer that ends the session; ``noIndex`` without one.
    var expiryTimer: UInt32 {
        if case .offline(let timer) = presence { timer } else { noIndex }
    }

    mutating func attach(_ handle: Handle, _ connect: Connect, atMs: Int64) {
        presence = .connected(handle)
        version = connect.version
        keepAlive = connect.keepAlive
        sinceMs = atMs
    }

    mutating func detach(_ reason: CloseReason, atMs: Int64) {
        presence = .offline(expiryTimer: noIndex)
        lastCloseReason = reason.kind
        sinceMs = atMs
    }

    /// Offline since that time, as the store says.
    mutating func restore(sinceMs: Int64, holdsShared: Bool, queue: OutboundQueue) {
        self.sinceMs = sinceMs
        self.holdsShared = holdsShared
        outbound = queue
    }

    /// The session of an offline client expires with this timer; ``noIndex`` takes the timer away.
    mutating func setExpiryTimer(_ timer: UInt32) {
        guard case .offline = presence else {
            preconditionFailure("a connected session was to expire")
        }
        presence = .offline(expiryTimer: timer)
    }

    // MARK: Ownership

    /// Whether a client may have the session: it is of the same user, and proves that if the user did.
    func isOwned(by user: SessionUser?) -> Bool {
        guard let user else { return !hasUserName }
        return hasUserName && userName.equals(user.name) && (user.isProven || !isUserProven)
    }

    /// A proven user name, for reports; `nil` for an anonymous client.
    var provenUserName: [UInt8]? { isUserProven ? userName.array : nil }

    // MARK: The queue

    /// A message of a shared subscription is in the session's queue in the store.
    mutating func noteShared() { holdsShared = true }

    /// The session's next message waits for a commit; false when that was so before.
    mutating func setAwaitsCommit(_ awaits: Bool) -> Bool {
        guard awaitsCommit != awaits else { return false }
        awaitsCommit = awaits
        return true
    }

    /// Frees all that the session holds in the pool.
    mutating func releaseAll(in pool: BytePool) {
        outbound.removeAll(in: pool)
        inbound.removeAll(in: pool)
        clientIdentifier.destroy(in: pool)
        userName.destroy(in: pool)
    }

    /// The place of the session's counts of lost messages.
    mutating func setDrops(_ index: UInt32) { drops = index }
}
