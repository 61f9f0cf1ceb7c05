/// The end of one message for one receiver.
public struct ReceiptEvent: Sendable, Equatable {
    /// What became of the message.
    public enum Outcome: String, Sendable {
        case acknowledged, expired, dropped
    }

    /// Rises from event to event, and is never reused.
    public var number: UInt64
    public var messageID: String
    public var topic: String
    public var clientID: String
    public var outcome: Outcome
    /// The reason of a drop; `nil` without one.
    public var reason: String?
    /// The identifier of the message of the same collapse key that took its place; `nil` without one.
    public var replacedBy: String?
    /// UNIX time in milliseconds.
    public var atMs: Int64

    public init(
        number: UInt64, messageID: String, topic: String, clientID: String, outcome: Outcome,
        reason: String? = nil, replacedBy: String? = nil, atMs: Int64
    ) {
        self.number = number
        self.messageID = messageID
        self.topic = topic
        self.clientID = clientID
        self.outcome = outcome
        self.reason = reason
        self.replacedBy = replacedBy
        self.atMs = atMs
    }
}
