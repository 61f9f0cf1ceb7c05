import BrokerAPI
import Logging

/// Sends receipts to a back office, batch after batch in the order of the events.
///
/// A batch is repeated until the receiver takes it, and only then the next begins: so nothing is
/// lost or overtaken, whatever the receiver answers. The broker keeps the events meanwhile.
package final class WebhookSender: Sendable {
    /// Time until the next attempt when the broker does not answer.
    private static let brokerPause = Duration.seconds(1)

    private let settings: WebhookSettings
    package let credentials: WebhookCredentials
    private let counters = WebhookCounters()
    private let logger: Logger

    /// Reads the files at the start; any problem is an error.
    package init(_ settings: WebhookSettings, logger: Logger) throws(WebhookFiles.Unusable) {
        self.settings = settings
        self.logger = logger
        credentials = try WebhookCredentials(settings)
    }

    package var figures: WebhookFigures { counters.figures }

    /// Sends what the feed brings until the task is cancelled.
    package func run(_ feed: some ReceiptFeed) async {
        await run(feed, over: HTTPWebhookTransport(settings), WebhookTime())
    }

    func run(_ feed: some ReceiptFeed, over transport: some WebhookTransport, _ time: WebhookTime)
        async
    {
        defer { transport.close() }
        var log = WebhookLog(logger, url: settings.url)
        var taken: UInt64 = 0
        while !Task.isCancelled {
            guard let events = await feed.events(after: taken, most: WebhookBatch.mostEvents) else {
                await time.sleep(Self.brokerPause)
                continue
            }
            guard let batch = WebhookBatch(events) else {
                // Told again while nothing comes, because a full mailbox passes a command over.
                feed.take(through: taken)
                continue
            }
            guard await deliver(batch, over: transport, time, &log) else { return }
            taken = batch.last
            feed.take(through: taken)
        }
    }

    /// Repeats a batch until the receiver takes it; false when the task was cancelled before.
    private func deliver(
        _ batch: WebhookBatch, over transport: some WebhookTransport, _ time: WebhookTime,
        _ log: inout WebhookLog
    ) async -> Bool {
        var pause = RetryPause(longest: settings.longestPause)
        while true {
            let files = credentials.inUse
            let request = WebhookRequest(
                batch.body, delivery: batch.delivery, settings, secret: files.secret,
                seconds: time.now())
            let reply = await transport.send(request, files)
            // An attempt that the shutdown cut off is no failure of the receiver.
            if reply != .accepted, Task.isCancelled { return false }
            counters.count(reply, events: batch.count, now: time.now())
            if reply == .accepted {
                log.succeeded()
                return true
            }
            let wait = pause.take(retryAfter: reply.retryAfter, random: time.random())
            log.failed(reply, events: batch.count, pause: wait, now: time.now())
            await time.sleep(wait)
            if Task.isCancelled { return false }
        }
    }
}
