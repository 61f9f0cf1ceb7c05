import Glibc
import Logging

/// The broker's log: one line per event, written by a thread of its own.
///
/// Logging never waits for the output. Lines wait in a bounded buffer. When the output is too slow
/// (a stalled pipe, a full disk), further lines are dropped, and their number is logged later.
///
///     let log = try OperatorLog.start(level: .info, format: .text)
///     let logger = log.logger(label: "hermesd")
///     …
///     log.stop()
package final class OperatorLog: Sendable {
    /// The log cannot be started.
    package struct StartError: Error, CustomStringConvertible {
        /// The error number of pthread_create.
        package let code: CInt
        package var description: String {
            "cannot start the log's thread: system error \(code). "
                + "Raise the limit of processes (ulimit -u) or free memory."
        }
    }

    /// Bytes of lines waiting for the output.
    package static let defaultCapacityBytes = 1 << 20

    private let sink: LogSink

    private init(sink: LogSink) {
        self.sink = sink
    }

    /// Starts the thread that writes to `descriptor`. The caller owns the descriptor and keeps it
    /// open until `stop`.
    ///
    /// `capacityBytes` bounds the waiting lines, including the one being written.
    ///
    /// - Throws: `StartError` without a thread.
    package static func start(
        level: Logger.Level = .info,
        format: LogFormat = .text,
        descriptor: CInt = STDERR_FILENO,
        capacityBytes: Int = defaultCapacityBytes
    ) throws(StartError) -> OperatorLog {
        try start(
            level: level, format: format, descriptor: descriptor, capacityBytes: capacityBytes,
            clock: Timestamp.now)
    }

    static func start(
        level: Logger.Level, format: LogFormat, descriptor: CInt, capacityBytes: Int,
        clock: @escaping @Sendable () -> Timestamp
    ) throws(StartError) -> OperatorLog {
        let sink = LogSink(
            level: level, format: format, descriptor: descriptor, capacityBytes: capacityBytes,
            clock: clock)
        let code = sink.startThread()
        guard code == 0 else { throw StartError(code: code) }
        return OperatorLog(sink: sink)
    }

    deinit {
        stop()
    }

    /// A logger for this log; JSON lines contain its label.
    package func logger(label: String) -> Logger {
        Logger(label: label) { OperatorLogHandler(label: $0, sink: sink) }
    }

    /// The lowest logged level, for all loggers without a level of their own.
    package var level: Logger.Level {
        get { sink.level }
        set { sink.level = newValue }
    }

    /// Lines dropped since the start, because the buffer was full or the output failed.
    package var droppedLines: UInt64 { sink.totalDroppedLines }

    /// Waits until every earlier line is written or lost, at most `timeout`. For the end of the
    /// process, never for the packet path.
    ///
    /// - Returns: True when they are.
    @discardableResult
    package func flush(timeout: Duration = .seconds(2)) -> Bool {
        sink.flush(timeout: timeout)
    }

    /// Flushes for at most `timeout` and ends the thread; later lines are dropped. Further calls do
    /// nothing.
    package func stop(timeout: Duration = .seconds(2)) {
        sink.stop(timeout: timeout)
    }
}
