/// `GET /v1/clients/{id}/queue`: a page of what a client is owed, oldest first. `next` continues it.
public struct QueuePage: Codable, Sendable, Equatable {
    public var clientID: String
    public var messages: [QueuedMessage]
    /// Pass as `cursor` for the next page; `nil` at the end.
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
        /// Sent, or perhaps sent before the client went away, and not acknowledged.
        case inFlight = "in_flight"
        /// QoS 2: the client has the message, and only the last step is open.
        case released
    }

    /// Counts the messages of this client; it never changes.
    public var position: UInt64
    public var state: State
    /// `nil` once it is released: the message is gone.
    public var topic: String?
    /// As it goes to this client: 0, 1 or 2.
    public var qos: Int
    public var retain: Bool
    public var payloadBytes: Int
    /// UNIX time in milliseconds; `nil` keeps it.
    public var expiresAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case position, state, topic, qos, retain
        case payloadBytes = "payload_bytes"
        case expiresAtMs = "expires_at_ms"
    }

    public init(
        position: UInt64, state: State, topic: String?, qos: Int, retain: Bool, payloadBytes: Int,
        expiresAtMs: Int64? = nil
    ) {
        self.position = position
        self.state = state
        self.topic = topic
        self.qos = qos
        self.retain = retain
        self.payloadBytes = payloadBytes
        self.expiresAtMs = expiresAtMs
    }
}

/// Which part of a queue a page shows.
public struct QueueQuery: Sendable, Equatable {
    public var clientID: String
    /// 1 to 1,000.
    public var limit: Int
    /// The position that the page begins at, or the next one there is.
    public var from: UInt64

    public init(clientID: String, limit: Int = 100, from: UInt64 = 0) {
        self.clientID = clientID
        self.limit = limit
        self.from = from
    }
}

/// Answer of `DELETE /v1/clients/{id}/queue`.
public struct QueueDropResult: Codable, Sendable, Equatable {
    public var clientID: String
    /// Messages that waited and are gone.
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
