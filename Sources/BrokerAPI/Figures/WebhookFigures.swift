/// Figures of the webhook that tells a back office about receipts.
public struct WebhookFigures: Codable, Sendable, Equatable {
    /// Events sent since the start, by what came of it; an event counts once for each request.
    public var events: [String: UInt64]
    /// UNIX time of the last request that the receiver took; `nil` before the first.
    public var lastSuccessAtMs: Int64?
    /// The reason for which the last request failed; `nil` when it did not.
    public var failure: String?

    enum CodingKeys: String, CodingKey {
        case events
        case lastSuccessAtMs = "last_success_at_ms"
        case failure
    }

    public init(
        events: [String: UInt64], lastSuccessAtMs: Int64? = nil, failure: String? = nil
    ) {
        self.events = events
        self.lastSuccessAtMs = lastSuccessAtMs
        self.failure = failure
    }
}
