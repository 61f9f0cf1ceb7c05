/// Answer of `POST /v1/pushes` when the push is stored.
public struct PushAccepted: Codable, Sendable, Equatable {
    /// By which the push is found, and the receipt of its message.
    public var pushID: String
    /// "none", "interval" or "sync": the durability of the push.
    public var durability: String
    /// True when an earlier push with the same key got this answer.
    public var duplicate: Bool
    /// When it begins; `nil` for a duplicate.
    public var scheduled: ScheduledTime?

    enum CodingKeys: String, CodingKey {
        case pushID = "push_id"
        case durability, duplicate, scheduled
    }

    public init(
        pushID: String, durability: String, duplicate: Bool = false,
        scheduled: ScheduledTime? = nil
    ) {
        self.pushID = pushID
        self.durability = durability
        self.duplicate = duplicate
        self.scheduled = scheduled
    }
}
