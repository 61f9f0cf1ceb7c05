import Authorization
import BrokerAPI
import MQTTCore
import Structures

/// The memory that the sessions' own state counts for `limits.session_bytes` and
/// `limits.session_bytes_per_user`: records, names, topics that
/// logins allow, wills, subscriptions, and the packet identifiers
/// of QoS 2 that an offline client has not released.
///
/// All sizes follow from lengths alone, so that what is subtracted is what was added, however many
/// share a level of the topic tree; for shared levels they are too high. They are multiples of
/// ``unit``. Queues are not counted: they have limits of their own.
package struct SessionBytes: ~Copyable {
    /// Records of a session in ``Sessions``, its index and its timer.
    private static var ofRecord: Int { 256 }
    /// A subscription's record; of a shared one with the record of its group.
    private static var ofSubscription: Int { 32 }
    private static var ofSharedSubscription: Int { 128 }
    /// A node of the topic tree with its edge.
    private static var ofLevel: Int { 64 }
    /// Sizes are rounded up to this, so that a session's subscriptions fit in 32 bits.
    package static var unit: Int { 64 }

    /// Bytes of all sessions together.
    package private(set) var total = 0
    /// Bytes by the key of a proven user name, less one; empty without any.
    ///
    /// The table has a fixed size, so that it never stops the shard to grow. Users with the same key count
    /// together, which only matters to those few that have it in common with a greedy one.
    private var users: [Int] = []
    private static var userCount: Int { 32_768 }

    /// The key of a user name with this hash; never 0.
    package static func key(ofUser hash: UInt64) -> UInt32 {
        1 + UInt32(truncatingIfNeeded: hash % UInt64(userCount))
    }

    // MARK: Sizes

    /// The size of a new session.
    package static func of(
        identifier: UnsafeRawBufferPointer, user: SessionUser?
    ) -> Int {
        rounded(ofRecord + identifier.count + (user?.name.count ?? 0))
    }

    package static func of(_ session: Session) -> Int {
        rounded(ofRecord + session.clientID.count + session.userName.count)
    }

    /// The size of a subscription, in units. `levels` is the number of its filter's levels.
    package static func units(ofFilter filter: UnsafeRawBufferPointer, levels: Int) -> UInt32 {
        let record =
            SharedSubscriptions.isShared(filter) ? ofSharedSubscription : ofSubscription
        return UInt32(rounded(record + filter.count + ofLevel * levels) / unit)
    }

    package static func of(will: Message) -> Int { rounded(will.count) }

    /// Counted in full for each session, though those with equal lists share one.
    package static func of(_ allowance: TopicAllowance?) -> Int {
        rounded(allowance?.byteCount ?? 0)
    }

    package static func of(_ inbound: InboundQoS2) -> Int { rounded(inbound.byteCount) }

    package static func rounded(_ bytes: Int) -> Int { (bytes + unit - 1) / unit * unit }

    // MARK: Counting

    /// Counts a change. `user` is the key of the session's proven user name; 0 without one.
    package mutating func change(by bytes: Int, user: UInt32) {
        guard bytes != 0 else { return }
        total += bytes
        guard user != 0 else { return }
        if users.isEmpty { users = [Int](repeating: 0, count: Self.userCount) }
        users[Int(user) - 1] += bytes
    }

    /// The bytes of all sessions of a user.
    package func bytes(ofUser user: UInt32) -> Int {
        user == 0 || users.isEmpty ? 0 : users[Int(user) - 1]
    }

    /// The limit that is exceeded when a session of this user has grown by `added` bytes more than
    /// are counted.
    package func exceeded(adding added: Int, user: UInt32, _ limits: BrokerLimits) -> Limit? {
        if total + added > limits.mostSessionBytes { return .sessionBytes }
        return bytes(ofUser: user) + added > limits.mostSessionBytesPerUser && user != 0
            ? .sessionBytesPerUser : nil
    }
}
