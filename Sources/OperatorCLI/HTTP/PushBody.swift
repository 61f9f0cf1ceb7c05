/// Body of `POST /v1/pushes`.
struct PushBody: Encodable, Sendable {
    struct Target: Encodable, Sendable {
        var clients: [String]?
        var tags: Tags?
    }

    struct Tags: Encodable, Sendable {
        let any: [String]
        let all: [String]
        let none: [String]
    }

    struct Message: Encodable, Sendable {
        let topic: String
        let payload: String
        let qos: Int
        let messageID: String?
        let expiresInSeconds: Int64?
        /// `nil` leaves it to the broker.
        let receipts: Bool?
        /// `nil` leaves it to `wakes.rules`.
        let wake: String?

        enum CodingKeys: String, CodingKey {
            case topic
            case payload = "payload_base64"
            case qos
            case messageID = "message_id"
            case expiresInSeconds = "expires_in_s"
            case receipts, wake
        }
    }

    let target: Target
    let message: Message
    let deliverAt: String?
    let deliverInSeconds: Int64?
    let spreadSeconds: Int64
    let isDryRun: Bool

    enum CodingKeys: String, CodingKey {
        case target = "to"
        case message
        case deliverAt = "deliver_at"
        case deliverInSeconds = "deliver_in_s"
        case spreadSeconds = "spread_s"
        case isDryRun = "dry_run"
    }
}
