/// Receivers of a message, counted when it was routed.
package struct PublishCounts: Sendable, Equatable {
    /// Sessions with a matching subscription.
    package var matched = 0
    /// Of these, connected ones.
    package var online = 0
    /// Of these, offline ones that queued it.
    package var queued = 0
    /// Of these, receivers that lost it at once (a limit, or QoS 0 while offline).
    package var dropped = 0
    /// The number that ``Publication/sequence`` asked for.
    package var sequence: UInt64?

    package init(
        matched: Int = 0, online: Int = 0, queued: Int = 0, dropped: Int = 0,
        sequence: UInt64? = nil
    ) {
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
        self.sequence = sequence
    }
}

/// Answer of every publish over HTTP.
package struct PublishResult: Codable, Sendable, Equatable {
    package var messageID: String
    /// "none", "interval" or "sync": the durability of the message.
    package var durability: String
    /// Sessions with a matching subscription.
    package var matched: Int
    /// Of these, connected ones.
    package var online: Int
    /// Of these, sessions of offline clients that queued it.
    package var queued: Int
    /// Of these, receivers that lost it at once (a limit, or QoS 0 while offline).
    package var dropped: Int
    /// True when an earlier publish with this message_id got this answer.
    package var duplicate: Bool

    enum CodingKeys: String, CodingKey {
        case messageID = "message_id"
        case durability, matched, online, queued, dropped, duplicate
    }

    package init(
        messageID: String, durability: String, matched: Int, online: Int, queued: Int,
        dropped: Int, duplicate: Bool
    ) {
        self.messageID = messageID
        self.durability = durability
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
        self.duplicate = duplicate
    }
}
