import Credentials

/// One attempt to send a batch.
struct WebhookRequest: Sendable {
    let url: String
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// - Parameters:
    ///   - batch: The events.
    ///   - settings: The receiver.
    ///   - secret: Signs the request.
    ///   - seconds: The UNIX time, which the signature covers, so that an old request cannot be
    ///     passed off as a new one.
    init(
        _ batch: WebhookBatch, _ settings: WebhookSettings, secret: SigningSecret,
        seconds: Int64
    ) {
        let code = secret.signature(of: Array("\(seconds).".utf8) + batch.body)
        url = settings.url
        headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", "hermesd"),
            ("Hermes-Delivery", batch.delivery),
            ("Hermes-Signature", "t=\(seconds),v1=\(code)"),
        ]
        body = batch.body
    }
}
