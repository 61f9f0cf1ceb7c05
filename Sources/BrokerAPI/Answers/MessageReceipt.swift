/// Answer of `GET /v1/messages/{id}`: what became of a message for each of its receivers.
public struct MessageReceipt: Codable, Sendable, Equatable {
    /// Receivers by their state. The rest of `receivers` is ``pending``.
    public struct Counts: Codable, Sendable, Equatable {
        public var receivers = 0
        /// Queued, or sent and not acknowledged.
        public var pending = 0
        public var acknowledged = 0
        /// Sent with QoS 0, which nobody acknowledges.
        public var sent = 0
        public var expired = 0
        public var dropped = 0

        public init() {}
    }

    public struct Receiver: Codable, Sendable, Equatable {
        public enum State: String, Codable, Sendable {
            case queued, sent, acknowledged, expired, dropped
        }

        public var clientID: String
        public var state: State
        /// The reason of a drop.
        public var reason: String?
        /// UNIX time in milliseconds at which it was acknowledged, sent with QoS 0, expired or
        /// dropped; `nil` before.
        public var atMs: Int64?
        /// The filter of the shared subscription as whose member it gets the message, `$share/` and the
        /// group's name included; `nil` for one of more than 255 bytes, and without one.
        public var group: String?
        /// The identifier of the message of the same collapse key that took its place.
        public var replacedBy: String?

        enum CodingKeys: String, CodingKey {
            case clientID = "client_id"
            case state, reason
            case atMs = "at_ms"
            case group
            case replacedBy = "replaced_by"
        }

        public init(
            clientID: String, state: State, reason: String? = nil, atMs: Int64? = nil,
            group: String? = nil, replacedBy: String? = nil
        ) {
            self.clientID = clientID
            self.state = state
            self.reason = reason
            self.atMs = atMs
            self.group = group
            self.replacedBy = replacedBy
        }
    }

    public var messageID: String
    public var topic: String
    /// UNIX time in milliseconds.
    public var publishedAtMs: Int64
    public var counts: Counts
    /// In the order of routing; `nil` when there are more than ``mostListed``.
    public var receivers: [Receiver]?

    /// Receivers that are listed.
    public static let mostListed = 64

    enum CodingKeys: String, CodingKey {
        case messageID = "message_id"
        case topic
        case publishedAtMs = "published_at_ms"
        case counts, receivers
    }

    public init(
        messageID: String, topic: String, publishedAtMs: Int64, counts: Counts,
        receivers: [Receiver]?
    ) {
        self.messageID = messageID
        self.topic = topic
        self.publishedAtMs = publishedAtMs
        self.counts = counts
        self.receivers = receivers
    }
}
