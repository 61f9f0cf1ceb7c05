/// A retained message in a list.
public struct RetainedSummary: Codable, Sendable, Equatable {
    public var topic: String
    public var qos: Int
    public var payloadBytes: Int
    /// UNIX time in milliseconds; `nil` for one that does not expire.
    public var expiresAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case topic, qos
        case payloadBytes = "payload_bytes"
        case expiresAtMs = "expires_at_ms"
    }

    public init(topic: String, qos: Int, payloadBytes: Int, expiresAtMs: Int64?) {
        self.topic = topic
        self.qos = qos
        self.payloadBytes = payloadBytes
        self.expiresAtMs = expiresAtMs
    }
}

/// A page of retained messages in the order of their topics' bytes.
public struct RetainedPage: Codable, Sendable, Equatable {
    public var retained: [RetainedSummary]
    /// The `cursor` of the next page; `nil` at the end.
    public var next: String?

    public init(retained: [RetainedSummary], next: String?) {
        self.retained = retained
        self.next = next
    }
}

/// A retained message with its payload, as the data plane answers it.
public struct RetainedMessage: Sendable, Equatable {
    public var summary: RetainedSummary
    public var payload: [UInt8]

    public init(summary: RetainedSummary, payload: [UInt8]) {
        self.summary = summary
        self.payload = payload
    }
}

/// A retained message as the HTTP API shows it: a payload of UTF-8 as text, any other in Base64.
public struct RetainedModel: Codable, Sendable, Equatable {
    public var topic: String
    public var qos: Int
    public var payloadBytes: Int
    public var expiresAtMs: Int64?
    public var payload: String?
    public var payloadBase64: String?

    enum CodingKeys: String, CodingKey {
        case topic, qos
        case payloadBytes = "payload_bytes"
        case expiresAtMs = "expires_at_ms"
        case payload
        case payloadBase64 = "payload_base64"
    }

    public init(_ message: RetainedSummary, payload: String?, payloadBase64: String?) {
        topic = message.topic
        qos = message.qos
        payloadBytes = message.payloadBytes
        expiresAtMs = message.expiresAtMs
        self.payload = payload
        self.payloadBase64 = payloadBase64
    }
}
