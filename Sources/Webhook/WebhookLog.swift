import Logging
import OperatorLog

/// The webhook's log lines: one when it begins to fail, further ones at times, one when it works
/// again.
struct WebhookLog {
    /// Time between two lines about a failure that lasts.
    private static let interval = Duration.seconds(600)

    private let logger: Logger
    private let url: String
    private var limiter = LogLimiter(maximumKeys: WebhookReply.Outcome.allCases.count + 1)
    /// Failed attempts since the last one that succeeded.
    private var failures = 0

    init(_ logger: Logger, url: String) {
        self.logger = logger
        self.url = url
    }

    /// Notes a failed attempt with that many events; `now` is the UNIX time in seconds.
    mutating func failed(
        _ reply: WebhookReply, events: Int, pause: Duration, now: Int64
    ) {
        failures += 1
        let suppressed = limiter.admit(
            reply.outcome, every: Self.interval, atMilliseconds: UInt64(max(0, now)) * 1_000)
        guard let suppressed else { return }
        let metadata: Logger.Metadata = [
            LogKeys.webhookURL: "\(url)", LogKeys.reason: "\(reply.reason)",
            LogKeys.webhookEvents: "\(events)",
            LogKeys.webhookPause: "\(Int(pause / .milliseconds(1)))",
        ]
        if reply.outcome == .refused {
            logger.error(
                "The webhook's receiver refuses the events, and they are sent again until it takes them",
                metadata: metadata.suppressing(suppressed).merging([
                    LogKeys.hint:
                        "correct the receiver, or webhook.url and webhook.secret_file"
                ]) { first, _ in first })
        } else {
            logger.warning(
                "The webhook's receiver takes no events, and they are sent again",
                metadata: metadata.suppressing(suppressed))
        }
    }

    mutating func succeeded() {
        guard failures > 0 else { return }
        logger.notice(
            "The webhook's receiver takes events again",
            metadata: [LogKeys.webhookURL: "\(url)", LogKeys.webhookFailures: "\(failures)"])
        failures = 0
    }
}
