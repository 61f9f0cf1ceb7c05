import Glibc
import Logging

/// The broker's log: one line per event, written by a thread of its own.
///
/// Logging never waits for the output. Lines wait in a bounded buffer; when the output does not
/// keep up (a stalled pipe, a full disk), further lines are dropped and their number is logged
/// as soon as there is room again.
///
///     let log = try OperatorLog.start(level: .info, format: .text)
///     let logger = log.logger(label: "hermesd")
///     …
///     log.stop()
package final class OperatorLog: Sendable {
    /// Why the log could not be started.
    package struct StartError: Error, CustomStringConvertible {
        /// The error number of pthread_create.
        package let code: CInt
        package var description: String {
            "cannot start the log's thread: system error \(code). "
                + "Raise the limit of processes (ulimit -u) or free memory."
        }
    }

    /// Bytes of lines that wait for the output.
    package static let defaultCapacityBytes = 1 << 20

    private let sink: LogSink

    private init(sink: LogSink) {
        self.sink = sink
    }

    /// Starts the thread that writes to `descriptor`, which stays the caller's and must stay
    /// open until `stop`.
    ///
    /// `capacityBytes` bounds the lines that wait, the one being written included.
    ///
    /// - Throws: `StartError` when the system gives no thread.
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

    /// A logger whose lines go here; JSON lines carry its label.
    package func logger(label: String) -> Logger {
        Logger(label: label) { OperatorLogHandler(label: $0, sink: sink) }
    }

    /// The least important level that is logged. Changing it affects every logger at once, but
    /// for those that were given a level of their own.
    package var level: Logger.Level {
        get { sink.level }
        set { sink.level = newValue }
    }

    /// Lines that were dropped since the start, because they did not fit or could not be
    /// written.
    package var droppedLines: UInt64 { sink.totalDroppedLines }

    /// Waits until every line logged before the call is written or lost, but no longer than
    /// `timeout`; for the moments before the process ends, never for the packet path.
    ///
    /// Returns whether they are.
    @discardableResult
    package func flush(timeout: Duration = .seconds(2)) -> Bool {
        sink.flush(timeout: timeout)
    }

    /// Flushes for at most `timeout` and ends the thread; lines logged later are dropped.
    ///
    /// Calling it again does nothing.
    package func stop(timeout: Duration = .seconds(2)) {
        sink.stop(timeout: timeout)
    }
}
