import Logging
import Synchronization

/// A log that a test can read.
final class CapturedLog: Sendable {
    struct Line: Sendable {
        var level: Logger.Level
        var message: String
        var metadata: [String: String]
    }

    private let kept = Mutex([Line]())

    var lines: [Line] { kept.withLock { $0 } }

    func lines(of message: String) -> [Line] { lines.filter { $0.message == message } }

    /// A logger that writes here, from `trace` on.
    var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(log: self) }
        logger.logLevel = .trace
        return logger
    }

    fileprivate func keep(_ line: Line) { kept.withLock { $0.append(line) } }
}

private struct Handler: LogHandler {
    let log: CapturedLog
    var logLevel = Logger.Level.trace
    var metadata: Logger.Metadata = [:]

    init(log: CapturedLog) {
        self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        log.keep(
            CapturedLog.Line(
                level: event.level, message: "\(event.message)",
                metadata: (event.metadata ?? [:]).mapValues { "\($0)" }))
    }
}
