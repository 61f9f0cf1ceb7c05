/// What every publish over HTTP answers.
public struct PublishResult: Codable, Sendable, Equatable {
    public var messageID: String
    /// "none", "interval" or "sync": what the answer promises.
    public var durability: String
    /// Sessions with a matching subscription.
    public var matched: Int
    /// Of these, connected ones.
    public var online: Int
    /// Of these, sessions of absent clients that queued it.
    public var queued: Int
    /// Of these, receivers that lost it at once (a limit, or QoS 0 while away).
    public var dropped: Int
    /// True when an earlier publish with this message_id already gave this answer.
    public var duplicate: Bool

    enum CodingKeys: String, CodingKey {
        case messageID = "message_id"
        case durability, matched, online, queued, dropped, duplicate
    }

    public init(
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
