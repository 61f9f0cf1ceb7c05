/// Answer of `GET /v1/clients/{id}/queue`: a page of a client's queue, oldest first.
public struct QueuePage: Codable, Sendable, Equatable {
    public var clientID: String
    public var messages: [QueuedMessage]
    /// The `cursor` of the next page; `nil` at the end.
    public var next: String?

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case messages, next
    }

    public init(clientID: String, messages: [QueuedMessage], next: String? = nil) {
        self.clientID = clientID
        self.messages = messages
        self.next = next
    }
}

/// One message of a queue.
public struct QueuedMessage: Codable, Sendable, Equatable {
    public enum State: String, Codable, Sendable {
        /// Not sent yet.
        case waiting
        /// Sent and not acknowledged; for an offline client, perhaps sent.
        case inFlight = "in_flight"
        /// QoS 2: the client has sent PUBREC; PUBCOMP is missing.
        case released
    }

    /// Numbers the messages of this client; it never changes.
    public var position: UInt64
    public var state: State
    /// The publisher's identifier of the message. `nil` for one that came over MQTT, and once
    /// released.
    public var messageID: String?
    /// `nil` once released, because the content has been deleted.
    public var topic: String?
    /// QoS of the delivery to this client: 0, 1 or 2.
    public var qos: Int
    public var retain: Bool
    public var payloadBytes: Int
    /// UNIX time in milliseconds; `nil` never expires.
    public var expiresAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case position, state, topic, qos, retain
        case messageID = "message_id"
        case payloadBytes = "payload_bytes"
        case expiresAtMs = "expires_at_ms"
    }

    public init(
        position: UInt64, state: State, topic: String?, qos: Int, retain: Bool, payloadBytes: Int,
        expiresAtMs: Int64? = nil, messageID: String? = nil
    ) {
        self.position = position
        self.state = state
        self.messageID = messageID
        self.topic = topic
        self.qos = qos
        self.retain = retain
        self.payloadBytes = payloadBytes
        self.expiresAtMs = expiresAtMs
    }
}

/// The result of dropping part of a queue.
public struct QueueDrop: Sendable, Equatable {
    /// Number of dropped messages.
    public var dropped: Int
    /// The end of the queue when dropping began; later messages stay.
    public var bound: UInt64
    /// True when messages below the bound remain: repeat the command with it.
    public var hasMore: Bool

    public init(dropped: Int, bound: UInt64, hasMore: Bool) {
        self.dropped = dropped
        self.bound = bound
        self.hasMore = hasMore
    }
}

/// Answer of `DELETE /v1/clients/{id}/queue`.
public struct QueueDropResult: Codable, Sendable, Equatable {
    public var clientID: String
    /// Number of dropped messages.
    public var dropped: Int

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case dropped
    }

    public init(clientID: String, dropped: Int) {
        self.clientID = clientID
        self.dropped = dropped
    }
}
