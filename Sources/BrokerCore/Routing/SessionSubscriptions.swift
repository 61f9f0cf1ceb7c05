import MQTTCodec
import MQTTCore
import Structures

/// The indices of one session's subscriptions in ``Subscriptions``; kept in the session's record.
package struct SessionSubscriptions: BitwiseCopyable {
    var filters = SubscriptionTrie.List()
    var shared = SharedSubscriptions.List()
    /// The filters' weight, counted by `limits.max_subscriptions`.
    package internal(set) var weight: UInt32 = 0
    /// The filters' size in units of ``SessionBytes``.
    var units: UInt32 = 0

    /// The size that the filters count for `limits.subscription_bytes`.
    package var byteCount: Int { Int(units) * SessionBytes.unit }
    package var count: Int { Int(filters.count) + Int(shared.count) }
    package var hasShared: Bool { shared.count > 0 }
}

extension Subscriptions {
    /// What was removed of a session's subscriptions.
    package enum Removed: Equatable {
        /// The session had no subscription with this filter.
        case none
        case plain
        /// The session has left this group.
        case shared(group: UInt32)
    }
}
