import Logging
import Synchronization

/// Says in the log who publishes over HTTP: the first message of a caller at once, and then one line a
/// minute with how many there were. A line for each would be more work than the message.
final class PublishLog: Sendable {
    private struct Record {
        var nextLine: ContinuousClock.Instant
        var messages = 0
    }

    private static let interval = Duration.seconds(60)
    /// Above the number of tokens there can be; names of tokens long gone are forgotten there.
    private static let maximumCallers = 4_096

    private let logger: Logger
    private let records = Mutex([String: Record]())

    init(logger: Logger) {
        self.logger = logger
    }

    /// The data plane has taken a message of this caller.
    func note(_ caller: Caller, at now: ContinuousClock.Instant = .now) {
        let messages: Int? = records.withLock { records in
            if records.count >= Self.maximumCallers { records = [:] }
            var record = records[caller.name] ?? Record(nextLine: now)
            record.messages += 1
            guard now >= record.nextLine else {
                records[caller.name] = record
                return nil
            }
            records[caller.name] = Record(nextLine: now + Self.interval)
            return record.messages
        }
        guard let messages else { return }
        logger.info(
            "Published over HTTP",
            metadata: [LogKeys.token: "\(caller.name)", LogKeys.messages: "\(messages)"])
    }
}
