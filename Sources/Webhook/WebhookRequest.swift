import Credentials

/// One attempt to send a document.
struct WebhookRequest: Sendable {
    let url: String
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// - Parameters:
    ///   - body: The JSON document.
    ///   - delivery: Its name, the same for each attempt.
    ///   - settings: The receiver.
    ///   - secret: Signs the request.
    ///   - seconds: The UNIX time, which the signature covers, so that an old request cannot be
    ///     passed off as a new one.
    init(
        _ body: [UInt8], delivery: String, _ settings: WebhookSettings, secret: SigningSecret,
        seconds: Int64
    ) {
        let code = secret.signature(of: Array("\(seconds).".utf8) + body)
        url = settings.url
        headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", "hermesd"),
            ("Hermes-Delivery", delivery),
            ("Hermes-Signature", "t=\(seconds),v1=\(code)"),
        ]
        self.body = body
    }
}
