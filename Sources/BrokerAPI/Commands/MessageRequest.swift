/// Body of `POST /v1/messages`, for programs that send it. Absent fields get the server's defaults.
public struct MessageRequest: Codable, Sendable, Equatable {
    public var topic: String
    /// The payload as text; give this or `payloadBase64`.
    public var payload: String?
    /// The payload as standard base64 with padding.
    public var payloadBase64: String?
    /// 0, 1 or 2.
    public var qos: Int?
    public var retain: Bool?
    /// 1 to 128 visible ASCII characters; if absent, the server creates one.
    public var messageID: String?
    /// Seconds after which the message is no longer delivered; 1 to 4,294,967,295.
    public var expiresInSeconds: Int64?
    /// 1 to 128 visible ASCII characters, by which a repeat is recognised.
    public var idempotencyKey: String?

    enum CodingKeys: String, CodingKey {
        case topic, payload
        case payloadBase64 = "payload_base64"
        case qos, retain
        case messageID = "message_id"
        case expiresInSeconds = "expires_in_s"
        case idempotencyKey = "idempotency_key"
    }

    public init(
        topic: String, payload: String? = nil, payloadBase64: String? = nil, qos: Int? = nil,
        retain: Bool? = nil, messageID: String? = nil, expiresInSeconds: Int64? = nil,
        idempotencyKey: String? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.payloadBase64 = payloadBase64
        self.qos = qos
        self.retain = retain
        self.messageID = messageID
        self.expiresInSeconds = expiresInSeconds
        self.idempotencyKey = idempotencyKey
    }
}
