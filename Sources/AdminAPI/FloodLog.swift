import Logging
import OperatorLog
import Synchronization

/// Logs events that callers can cause often, rate-limited by ``LogLimiter``; for any thread.
final class FloodLog: Sendable {
    private let logger: Logger
    private let limiter: Mutex<LogLimiter>
    private let origin = ContinuousClock.now

    init(logger: Logger, maximumKeys: Int = 64) {
        self.logger = logger
        limiter = Mutex(LogLimiter(maximumKeys: maximumKeys))
    }

    /// Writes a line, at most once a second for each message and kind.
    func write(
        _ level: Logger.Level, _ message: Logger.Message, kind: String = "",
        _ metadata: @autoclosure () -> Logger.Metadata
    ) {
        let heldBack = admit { $0.admit(["\(message)", kind], atMilliseconds: $1) }
        guard let heldBack else { return }
        logger.log(level: level, message, metadata: metadata().suppressing(heldBack))
    }

    /// Asks the limiter with the time in milliseconds.
    func admit<Answer: Sendable>(
        at now: ContinuousClock.Instant = .now,
        _ ask: (inout LogLimiter, UInt64) -> Answer
    ) -> Answer {
        let (seconds, attoseconds) = max(origin.duration(to: now), .zero).components
        let milliseconds = UInt64(seconds) * 1_000 + UInt64(attoseconds / 1_000_000_000_000_000)
        return limiter.withLock { ask(&$0, milliseconds) }
    }
}
