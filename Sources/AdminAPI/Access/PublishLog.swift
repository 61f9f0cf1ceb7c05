import Logging
import OperatorLog

/// Logs publishes over HTTP: the first message of a caller at once, then one line a minute with the
/// count. A line for each would cost more than the message.
final class PublishLog: Sendable {
    private let logger: Logger
    /// For more keys than there can be tokens.
    private let lines: FloodLog

    init(logger: Logger) {
        self.logger = logger
        lines = FloodLog(logger: logger, maximumKeys: 4_096)
    }

    /// Counts accepted messages of this caller.
    func note(
        _ caller: Caller, messages: Int = 1, at now: ContinuousClock.Instant = .now
    ) {
        let heldBack = lines.admit(at: now) {
            $0.admit(caller.name, every: .seconds(60), count: messages, atMilliseconds: $1)
        }
        guard let heldBack else { return }
        logger.info(
            "Published over HTTP",
            metadata: [
                LogKeys.adminToken: "\(caller.name)", LogKeys.messages: "\(heldBack + messages)",
            ])
    }
}
