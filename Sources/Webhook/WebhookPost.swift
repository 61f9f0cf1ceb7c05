/// Sends single documents to a receiver, signed, any number at once.
package struct WebhookPost: Sendable {
    private let settings: WebhookSettings
    private let credentials: WebhookCredentials
    private let transport: any WebhookTransport
    private let time = WebhookTime()

    /// Connects to nothing yet. At most `connections` requests are on their way at once; further ones
    /// wait, within the time for their answer.
    package init(
        _ settings: WebhookSettings, _ credentials: WebhookCredentials, connections: Int
    ) {
        self.settings = settings
        self.credentials = credentials
        transport = HTTPWebhookTransport(settings, connections: connections)
    }

    /// Posts a JSON document once; `delivery` names it for a receiver that gets it again.
    package func post(_ body: [UInt8], delivery: String) async -> WebhookReply {
        let files = credentials.inUse
        return await transport.send(
            WebhookRequest(
                body, delivery: delivery, settings, secret: files.secret, seconds: time.now()),
            files)
    }

    /// Ends all connections; returns at once.
    package func close() { transport.close() }
}
