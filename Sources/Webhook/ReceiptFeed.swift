import BrokerAPI

/// The broker's side of the webhook: the events that no receiver has taken yet.
package protocol ReceiptFeed: Sendable {
    /// The oldest events after a number, at most that many. Waits for the first for some seconds;
    /// then there are none.
    ///
    /// - Returns: `nil` when the broker does not answer now, or the task is cancelled.
    func events(after number: UInt64, most: Int) async -> [ReceiptEvent]?

    /// Ends all events up to a number: they are never sent again. It may come to nothing when the
    /// broker is busy, and does nothing when it is repeated.
    func take(through number: UInt64)
}

/// The way to the receiver.
protocol WebhookTransport: Sendable {
    /// Sends a request and waits for its answer, which the settings' timeout bounds.
    func send(_ request: WebhookRequest, _ files: WebhookFiles) async -> WebhookReply
    /// Ends all connections; returns at once.
    func close()
}
