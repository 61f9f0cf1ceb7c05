import BrokerAPI
import CLinux
import Logging
import OperatorLog
import PlainText
import Synchronization
import Webhook

/// Posts owed wakes of devices of the kind `webhook` to the operator's URL, each in a request of its
/// own, whose status says what became of it.
///
/// It asks the broker for as many as there are free connections, and for none while the receiver
/// fails: so the broker keeps what is owed.
package final class WebhookWakes: Sendable {
    /// Requests on their way at once.
    static let mostAtOnce = 32
    /// Time after which the broker is asked again: under load it may lose a request.
    private static let patience = Duration.seconds(3)
    /// Time between two lines about a failure that lasts.
    private static let lineInterval = Duration.seconds(600)

    private enum Event: Sendable {
        case wakes([Wake])
        case answered(Wake, WebhookReply)
        case tick
    }

    private struct Counters {
        var wakes: [WakeResult: UInt64] = [:]
        var lastSuccessAtMs: Int64?
        var failure: String?
    }

    package let credentials: WebhookCredentials
    private let settings: WebhookSettings
    private let logger: Logger
    private let counters = Mutex(Counters())

    /// Reads the files at the start; any problem is an error.
    package init(_ settings: WebhookSettings, logger: Logger) throws(WebhookFiles.Unusable) {
        self.settings = settings
        self.logger = logger
        credentials = try WebhookCredentials(settings)
    }

    package var figures: WebhookFigures {
        let counters = counters.withLock { $0 }
        var wakes: [String: UInt64] = [:]
        for result in WakeResult.allCases { wakes[result.name] = counters.wakes[result] ?? 0 }
        return WebhookFigures(
            events: wakes, lastSuccessAtMs: counters.lastSuccessAtMs, failure: counters.failure)
    }

    /// Posts what the broker owes until the task is cancelled.
    package func run(_ feed: some WakeFeed) async {
        let post = WebhookPost(settings, credentials, connections: Self.mostAtOnce)
        defer { post.close() }
        let (events, source) = AsyncStream.makeStream(of: Event.self)
        await withTaskGroup { tasks in
            tasks.addTask {
                while (try? await Task.sleep(for: Self.patience)) != nil { source.yield(.tick) }
                source.finish()
            }
            await work(
                feed, events,
                ask: { most in
                    feed.next(
                        .webhook, WakeDemand(most: most, take: { source.yield(.wakes($0)) }))
                },
                start: { wake in
                    tasks.addTask {
                        let reply = await post.post(
                            WakeDocument.bytes(of: wake), delivery: wake.notificationName)
                        source.yield(.answered(wake, reply))
                    }
                })
            tasks.cancelAll()
        }
    }

    private func work(
        _ feed: some WakeFeed, _ events: AsyncStream<Event>, ask: (Int) -> Void,
        start: (Wake) -> Void
    ) async {
        var (open, hasAsked, failures) = (0, false, 0)
        var pause = RetryPause(longest: settings.longestPause)
        var pausedUntil: UInt64 = 0
        var limiter = LogLimiter(maximumKeys: 8)
        func askIfFree() {
            guard !hasAsked, open < Self.mostAtOnce, pausedUntil <= hermes_monotonic_ms() else {
                return
            }
            hasAsked = true
            ask(Self.mostAtOnce - open)
        }
        askIfFree()
        for await event in events {
            switch event {
            case .tick: hasAsked = false
            case .wakes(let wakes):
                hasAsked = false
                open += wakes.count
                for wake in wakes { start(wake) }
            case .answered(let wake, let reply):
                open -= 1
                let now = hermes_monotonic_ms()
                if Self.reaches(reply) {
                    if failures > 0 { succeeded(after: failures) }
                    (failures, pause) = (0, RetryPause(longest: settings.longestPause))
                } else {
                    failures += 1
                    if pausedUntil <= now {
                        let length = pause.take(
                            retryAfter: reply.retryAfter, random: Double.random(in: 0...1))
                        pausedUntil = now + UInt64(length / .milliseconds(1))
                        failed(reply, &limiter, at: now)
                    }
                }
                let outcome = Self.outcome(
                    of: reply, pause: max(pausedUntil, now + 1_000) - now)
                count(outcome, reply)
                // A lost answer repeats the wake, which has the same name.
                _ = feed.answer([WakeAnswer(wake.handOut, outcome, reason: reply.reason)])
            }
            askIfFree()
        }
    }

    /// True when the receiver has judged this wake, whatever it said.
    private static func reaches(_ reply: WebhookReply) -> Bool {
        switch reply {
        case .accepted: true
        case .status(let status, _): judged.contains(status)
        case .noAnswer: false
        }
    }

    /// Statuses that say something of the wake, not of the receiver. 404 is none of them: a wrong
    /// path gives it too.
    private static let judged: Set<Int> = [400, 410, 413, 422]

    static func outcome(of reply: WebhookReply, pause: UInt64) -> WakeAnswer.Outcome {
        switch reply {
        case .accepted: .accepted
        case .status(410, _): .gone(atMs: nil)
        case .status(let status, _) where judged.contains(status): .refused
        case .status: .later(milliseconds: pause)
        // It may never have reached the receiver, which is asked for nothing until the pause ends.
        case .noAnswer: .givenBack
        }
    }

    private func count(_ outcome: WakeAnswer.Outcome, _ reply: WebhookReply) {
        counters.withLock { counters in
            counters.wakes[outcome.result, default: 0] += 1
            switch outcome {
            case .later, .givenBack: counters.failure = reply.reason
            case .accepted, .gone, .badDevice, .refused:
                counters.failure = nil
                counters.lastSuccessAtMs = hermes_wall_ms()
            }
        }
    }

    private func failed(_ reply: WebhookReply, _ limiter: inout LogLimiter, at now: UInt64) {
        let suppressed = limiter.admit(
            reply.reason, every: Self.lineInterval, atMilliseconds: now)
        guard let suppressed else { return }
        let metadata: Logger.Metadata = [
            LogKeys.webhookURL: "\(settings.url)",
            LogKeys.reason: "\(VisibleText.escaped(reply.reason, limit: 300))",
        ]
        logger.warning(
            "The receiver of wakes.webhook takes no wakes, and they are sent again",
            metadata: metadata.suppressing(suppressed))
    }

    private func succeeded(after failures: Int) {
        logger.notice(
            "The receiver of wakes.webhook takes wakes again",
            metadata: [
                LogKeys.webhookURL: "\(settings.url)", LogKeys.webhookFailures: "\(failures)",
            ])
    }
}
