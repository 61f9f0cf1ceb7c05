import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The session state of a client identifier, with or without a connection (section 4.1).
///
/// A broker may hold a million, most of them offline. Most of their cost is this record, so its
/// members are ordered to leave few gaps.
package struct Session: BitwiseCopyable {
    private enum Presence: BitwiseCopyable {
        /// The client's connection, whose CONNACK may not have been sent yet.
        case connected(Handle)
        /// The client is offline. The timer ends the session; ``noIndex`` without one.
        case offline(expiryTimer: UInt32)
    }

    /// What is known of the user name. An unproven one gives no rights.
    private enum UserName: BitwiseCopyable {
        case none, claimed
        /// By a password, a token or a certificate.
        case proven
    }

    private struct Flags: OptionSet, BitwiseCopyable {
        var rawValue: UInt8

        static let awaitsCommit = Flags(rawValue: 1)
        static let holdsShared = Flags(rawValue: 2)
        static let follows = Flags(rawValue: 4)
        static let isWatched = Flags(rawValue: 8)
        static let hasOptions = Flags(rawValue: 16)
        static let hasNoLocal = Flags(rawValue: 32)
    }

    /// 0 while the record is unused.
    package let generation: UInt32
    /// Index of the topics that the client's login allows, in ``Rights``; ``noIndex`` without any.
    package var allowance: UInt32 = noIndex
    /// The session's number in the store; never reused.
    package let number: UInt64
    package private(set) var clientID: CompactBytes
    /// The user name that owns the session together with the client identifier.
    package private(set) var userName = CompactBytes()
    private var presence = Presence.offline(expiryTimer: noIndex)
    /// Clean session was 0: the session outlives its connection.
    package let isPersistent: Bool
    private var userNameState = UserName.none
    package private(set) var version = Connect.Version.v3_1_1
    /// The protocol version as the admin plane names it.
    package var versionText: String {
        switch version {
        case .v3_1: "3.1"
        case .v3_1_1: "3.1.1"
        case .v5: "5.0"
        }
    }
    private var flags: Flags = []
    package private(set) var lastCloseReason: CloseReason.Kind?
    /// Seconds, as in CONNECT.
    package private(set) var keepAlive: UInt16 = 0
    /// UNIX time in milliseconds at which the client connected or went offline.
    package private(set) var sinceMs: Int64 = 0
    /// The queue of outbound messages.
    package var outbound = OutboundQueue()
    /// Packet identifiers of QoS 2 messages that await PUBREL.
    package var inbound = InboundQoS2()
    /// Indices of the session's subscriptions in the routing tables.
    package var subscriptions = SessionSubscriptions()
    /// The generation of access rules under which all queued messages were queued; 0 when unknown.
    package var accessGeneration: UInt32
    /// Index of the counts of lost messages in ``Sessions``; ``noIndex`` without any.
    package private(set) var drops: UInt32 = noIndex
    package var publishesReceived: UInt64 = 0
    package var publishesSent: UInt64 = 0
    /// The part of ``publishesSent`` that the client has to acknowledge.
    package var publishesSentAboveQoS0: UInt64 = 0
    package var publishesAcknowledged: UInt64 = 0

    package init(
        generation: UInt32, number: UInt64, isPersistent: Bool, accessGeneration: UInt32,
        clientID: UnsafeRawBufferPointer, user: SessionUser?, pool: BytePool
    ) {
        self.generation = generation
        self.number = number
        self.isPersistent = isPersistent
        self.accessGeneration = accessGeneration
        self.clientID = CompactBytes(clientID, pool: pool)
        if let user {
            userNameState = user.isProven ? .proven : .claimed
            userName = CompactBytes(user.name, pool: pool)
        }
    }

    /// The content of an unused record.
    private init() {
        (generation, number, isPersistent, accessGeneration) = (0, 0, false, 0)
        clientID = CompactBytes()
    }

    package static var unused: Session { Session() }

    /// False for a removed session whose subscriptions are still being removed.
    package var isUsed: Bool { generation != 0 }

    // MARK: Flags

    /// True while the session is listed because its next message waits for a commit.
    package var awaitsCommit: Bool { flags.contains(.awaitsCommit) }

    /// True when the session's stored queue may hold messages of shared subscriptions.
    package var holdsShared: Bool { flags.contains(.holdsShared) }

    /// True while any queue position of the session may be followed (`Shard+QueueEnds`).
    package var follows: Bool {
        get { flags.contains(.follows) }
        set { set(.follows, to: newValue) }
    }

    /// True when the client has a device that is woken for this session.
    package var isWatched: Bool {
        get { flags.contains(.isWatched) }
        set { set(.isWatched, to: newValue) }
    }

    /// True when any subscription was ever granted more than a QoS (``SubscriptionGrant/hasOptions``).
    package var hasOptions: Bool { flags.contains(.hasOptions) }

    /// True when any subscription was ever granted No Local.
    package var hasNoLocal: Bool { flags.contains(.hasNoLocal) }

    /// Notes what a subscription was granted.
    package mutating func note(_ grant: SubscriptionGrant) {
        if grant.hasOptions { set(.hasOptions, to: true) }
        if grant.noLocal { set(.hasNoLocal, to: true) }
    }

    private mutating func set(_ flag: Flags, to isSet: Bool) {
        if isSet { flags.insert(flag) } else { flags.remove(flag) }
    }

    // MARK: Presence

    /// The client's connection; `nil` while it is offline.
    @inline(__always)
    package var connection: Handle? {
        if case .connected(let handle) = presence { handle } else { nil }
    }

    /// The timer that ends the session; ``noIndex`` without one.
    package var expiryTimer: UInt32 {
        if case .offline(let timer) = presence { timer } else { noIndex }
    }

    package mutating func attach(_ handle: Handle, _ connect: Connect, atMs: Int64) {
        presence = .connected(handle)
        version = connect.version
        keepAlive = connect.keepAlive
        sinceMs = atMs
    }

    package mutating func detach(_ reason: CloseReason, atMs: Int64) {
        presence = .offline(expiryTimer: noIndex)
        lastCloseReason = reason.kind
        sinceMs = atMs
    }

    /// Restores an offline session from the store; `sinceMs` is the time at which it went offline.
    package mutating func restore(sinceMs: Int64, holdsShared: Bool, queue: OutboundQueue) {
        self.sinceMs = sinceMs
        set(.holdsShared, to: holdsShared)
        outbound = queue
    }

    /// Sets the timer that ends an offline client's session; ``noIndex`` removes it.
    package mutating func setExpiryTimer(_ timer: UInt32) {
        guard case .offline = presence else {
            preconditionFailure("a connected session was to expire")
        }
        presence = .offline(expiryTimer: timer)
    }

    // MARK: Ownership

    package var hasUserName: Bool { userNameState != .none }

    /// True when a password, token or certificate proved the user name.
    package var isUserProven: Bool { userNameState == .proven }

    /// True when the user owns the session: the names are equal, and a proven name stays proven.
    package func isOwned(by user: SessionUser?) -> Bool {
        guard let user else { return !hasUserName }
        return hasUserName && userName.equals(user.name) && (user.isProven || !isUserProven)
    }

    /// The proven user name, for reports; `nil` for an anonymous client.
    package var provenUserName: [UInt8]? { isUserProven ? userName.array : nil }

    /// The user name that owns the session, proven or not; `nil` without one.
    package var claimedUserName: [UInt8]? { hasUserName ? userName.array : nil }

    /// The same in the session's own bytes.
    package var ownerName: CompactBytes? { hasUserName ? userName : nil }

    // MARK: The queue

    /// Notes that the session's stored queue holds a message of a shared subscription.
    package mutating func noteShared() { flags.insert(.holdsShared) }

    /// Sets whether the session's next message waits for a commit; false without a change.
    package mutating func setAwaitsCommit(_ awaits: Bool) -> Bool {
        guard awaitsCommit != awaits else { return false }
        set(.awaitsCommit, to: awaits)
        return true
    }

    /// Frees all that the session holds in the pool.
    package mutating func releaseAll(in pool: BytePool) {
        outbound.removeAll(in: pool)
        inbound.removeAll(in: pool)
        clientID.destroy(in: pool)
        userName.destroy(in: pool)
    }

    package mutating func setDrops(_ index: UInt32) { drops = index }
}
