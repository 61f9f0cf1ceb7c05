/// `GET /v1/clients/{id}/queue`: a page of what a client is owed, oldest first. `next` continues it.
package struct QueuePage: Codable, Sendable, Equatable {
    package var clientID: String
    package var messages: [QueuedMessage]
    /// Pass as `cursor` for the next page; `nil` at the end.
    package var next: String?

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case messages, next
    }

    package init(clientID: String, messages: [QueuedMessage], next: String? = nil) {
        self.clientID = clientID
        self.messages = messages
        self.next = next
    }
}

/// One message of a queue.
package struct QueuedMessage: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        /// Not sent yet.
        case waiting
        /// Sent, or perhaps sent before the client went away, and not acknowledged.
        case inFlight = "in_flight"
        /// QoS 2: the client has the message, and only the last step is open.
        case released
    }

    /// Counts the messages of this client; it never changes.
    package var position: UInt64
    package var state: State
    /// `nil` once it is released: the message is gone.
    package var topic: String?
    /// As it goes to this client: 0, 1 or 2.
    package var qos: Int
    package var retain: Bool
    package var payloadBytes: Int
    /// UNIX time in milliseconds; `nil` keeps it.
    package var expiresAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case position, state, topic, qos, retain
        case payloadBytes = "payload_bytes"
        case expiresAtMs = "expires_at_ms"
    }

    package init(
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

/// Part of a queue was dropped.
package struct QueueDrop: Sendable, Equatable {
    /// Messages that waited and are gone.
    package var dropped: Int
    /// The end of the queue when dropping began: what came later stays.
    package var bound: UInt64
    /// More waits below the bound: the command is to be given again with it.
    package var hasMore: Bool

    package init(dropped: Int, bound: UInt64, hasMore: Bool) {
        self.dropped = dropped
        self.bound = bound
        self.hasMore = hasMore
    }
}

/// Answer of `DELETE /v1/clients/{id}/queue`.
package struct QueueDropResult: Codable, Sendable, Equatable {
    package var clientID: String
    /// Messages that waited and are gone.
    package var dropped: Int

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case dropped
    }

    package init(clientID: String, dropped: Int) {
        self.clientID = clientID
        self.dropped = dropped
    }
}
