import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// What belongs to a client identifier, with or without a connection (section 4.1).
///
/// There may be a million, most of them away: what they cost is mostly the size of this, so its members
/// stand in an order that leaves few gaps.
struct Session: BitwiseCopyable {
    /// 0 while the record is unused.
    var generation: UInt32 = 0
    /// Its connection; `nil` while the client is away.
    var connection: Handle?
    var version = Connect.Version.v3_1_1
    /// As the client asked, in seconds.
    var keepAlive: UInt16 = 0
    /// Clean session 0: it outlives its connection.
    var isPersistent = false
    /// Stands in the list of sessions whose next message waits for a commit.
    var awaitsCommit = false
    /// Retained messages that it asked for wait until it takes more.
    var hasStalledRetained = false
    var hasUserName = false
    /// A password or a certificate proved its user name; one that is only claimed gives no rights.
    var isUserProven = false
    /// Messages of shared subscriptions may be in its queue in the store.
    var holdsShared = false
    /// A part of its queue is on its way from the store.
    var isLoading = false
    var lastCloseReason: CloseReason?
    /// Positions below are on their way from the store, or have come.
    var loadBelow: UInt64 = 0
    /// Names it in the store; never reused.
    var number: UInt64 = 0
    var clientIdentifier = CompactBytes()
    /// It belongs to the client identifier and this user.
    var userName = CompactBytes()
    var subscriptions = SubscriptionTrie.List()
    var shared = SharedSubscriptions.List()
    /// What they count against `limits.max_subscriptions`.
    var subscriptionWeight: UInt32 = 0
    var expiryTimer: UInt32 = noIndex
    /// The rules under which all that its queue holds was put there; 0 for none that are known.
    var accessGeneration: UInt32 = 0
    /// What it lost, in the shard's ``Shard/sessionDrops``; ``noIndex`` while it is nothing.
    var drops: UInt32 = noIndex
    var outbound = OutboundQueue()
    var inbound = InboundQoS2()
    /// UNIX time in milliseconds of the connection, or of the disconnection.
    var sinceMs: Int64 = 0
    var publishesReceived: UInt64 = 0
    var publishesSent: UInt64 = 0
    var publishesAcknowledged: UInt64 = 0
}

/// What one session lost.
typealias SessionDropCounts = DropCounts<UInt32>
