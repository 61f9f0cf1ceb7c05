/// The time of a message that is published later.
public struct ScheduledTime: Codable, Sendable, Equatable {
    /// UNIX time in milliseconds.
    public var deliverAtMs: Int64

    enum CodingKeys: String, CodingKey { case deliverAtMs = "deliver_at_ms" }

    public init(deliverAtMs: Int64) { self.deliverAtMs = deliverAtMs }
}

/// A message that is published later.
public struct ScheduledMessage: Codable, Sendable, Equatable {
    public var messageID: String
    public var topic: String
    public var qos: Int
    public var retain: Bool
    public var payloadBytes: Int
    /// UNIX time in milliseconds.
    public var deliverAtMs: Int64
    /// Seconds from then on after which it expires; `nil` for never.
    public var expiresInSeconds: Int64?

    enum CodingKeys: String, CodingKey {
        case messageID = "message_id"
        case topic, qos, retain
        case payloadBytes = "payload_bytes"
        case deliverAtMs = "deliver_at_ms"
        case expiresInSeconds = "expires_in_s"
    }

    public init(
        messageID: String, topic: String, qos: Int, retain: Bool, payloadBytes: Int,
        deliverAtMs: Int64, expiresInSeconds: Int64?
    ) {
        self.messageID = messageID
        self.topic = topic
        self.qos = qos
        self.retain = retain
        self.payloadBytes = payloadBytes
        self.deliverAtMs = deliverAtMs
        self.expiresInSeconds = expiresInSeconds
    }
}

/// Some scheduled messages. A page may be short, or empty, although others follow.
public struct ScheduledPage: Codable, Sendable, Equatable {
    public var messages: [ScheduledMessage]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(messages: [ScheduledMessage] = [], next: String? = nil) {
        self.messages = messages
        self.next = next
    }
}

/// A change of a scheduled message.
public enum ScheduledChange: Sendable, Equatable {
    /// It is published at this UNIX time in milliseconds instead.
    case move(toMs: Int64)
    case cancel
}
