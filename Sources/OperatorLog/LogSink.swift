import Glibc
import Logging
import Synchronization
import SystemFiles

/// A bounded buffer of lines and the thread that writes them.
///
///     submit ──> pending ──(swap)──> batch ──> poll, write ──> descriptor
///       │ full
///       └──> droppedLines ──(behind the next batch)──> one line that counts them
///
/// The mutex is held while copying a line or swapping the buffer, never during a system call, so
/// that `submit` does not wait for the output.
///
/// Unchecked: all members are accessed under `mutex`, except `thread`, which `startThread` sets
/// before the sink is shared.
final class LogSink: @unchecked Sendable {
    let format: LogFormat
    let clock: @Sendable () -> Timestamp
    private let descriptor: CInt
    private let capacityBytes: Int
    private let levelIndex: Atomic<Int>

    // Guarded by `mutex`.
    private let mutex: ThreadMutex
    private var pending: [UInt8] = []
    /// Bytes of the batch being written.
    private var batchBytes = 0
    /// Dropped lines not reported yet.
    private var droppedLines: UInt64 = 0
    private var totalDropped: UInt64 = 0
    private var isOutputFailing = false
    /// Bytes accepted, and bytes written or lost, since the start, for `flush`.
    private var acceptedBytes: UInt64 = 0
    private var finishedBytes: UInt64 = 0
    private var state = State.running
    private var thread: pthread_t?

    private enum State {
        case running
        /// Pending lines are still written.
        case stopping
        /// Pending lines are lost.
        case abandoned
    }

    init(
        level: Logger.Level, format: LogFormat, descriptor: CInt, capacityBytes: Int,
        clock: @escaping @Sendable () -> Timestamp
    ) {
        self.format = format
        self.clock = clock
        self.descriptor = descriptor
        self.capacityBytes = capacityBytes
        levelIndex = Atomic(Self.index(level))
        mutex = ThreadMutex()
    }

    var level: Logger.Level {
        get { Logger.Level.allCases[levelIndex.load(ordering: .relaxed)] }
        set { levelIndex.store(Self.index(newValue), ordering: .relaxed) }
    }

    private static func index(_ level: Logger.Level) -> Int {
        guard let index = Logger.Level.allCases.firstIndex(of: level) else {
            preconditionFailure("level \(level) is missing in allCases")
        }
        return index
    }

    var totalDroppedLines: UInt64 {
        mutex.withLock { totalDropped }
    }

    /// Accepts a line, or drops and counts it when the buffer is full.
    func submit(_ line: [UInt8]) {
        mutex.withLock {
            guard state == .running, pending.count + batchBytes + line.count <= capacityBytes else {
                countDropped(1)
                mutex.signal(.work)
                return
            }
            pending.append(contentsOf: line)
            acceptedBytes += UInt64(line.count)
            mutex.signal(.work)
        }
    }

    func flush(timeout: Duration) -> Bool {
        let deadline = ThreadMutex.Deadline(after: timeout)
        return mutex.withLock {
            let target = acceptedBytes
            while finishedBytes < target {
                guard mutex.wait(.progress, until: deadline) else {
                    return finishedBytes >= target
                }
            }
            return true
        }
    }

    func stop(timeout: Duration) {
        let stopped: pthread_t? = mutex.withLock {
            guard state == .running, let thread else { return nil }
            state = .stopping
            mutex.signal(.work)
            self.thread = nil
            return thread
        }
        guard let stopped else { return }
        _ = flush(timeout: timeout)
        mutex.withLock { state = .abandoned }
        // Ends within one poll interval, because the thread checks the state between writes.
        pthread_join(stopped, nil)
    }

    /// Starts the thread; returns 0 or the error of pthread_create.
    func startThread() -> CInt {
        // Signals belong to the main thread; SIGPIPE of a closed output becomes EPIPE.
        var all = sigset_t()
        var previous = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }

        var created = pthread_t()
        // The thread retains the sink until it ends.
        let retained = Unmanaged.passRetained(self)
        let code = pthread_create(
            &created, nil,
            { argument in
                guard let argument else { preconditionFailure("log thread without its sink") }
                Unmanaged<LogSink>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        guard code == 0 else {
            retained.release()
            return code
        }
        thread = created
        return 0
    }

    // MARK: - On the log's own thread

    private func run() {
        // After a failure within a line, the next line begins on a new one.
        var endsInMidLine = false
        while let (lines, dropped) = takeBatch() {
            // Part of the batch, so that flush and stop include it.
            let bytes = dropped > 0 ? lines + notice(of: dropped) : lines
            if endsInMidLine, write([Self.lineFeed]) == 1 { endsInMidLine = false }
            let written = endsInMidLine ? 0 : write(bytes)
            if written > 0 { endsInMidLine = bytes[written - 1] != Self.lineFeed }
            let rest = bytes[written...]
            mutex.withLock {
                if !rest.isEmpty {
                    // The last line counts earlier losses; the count goes with a later batch.
                    countDropped(Self.lineCount(rest) - (dropped > 0 ? 1 : 0))
                    droppedLines += dropped
                }
                isOutputFailing = !rest.isEmpty
                batchBytes = 0
                finishedBytes += UInt64(lines.count)
                mutex.signal(.progress)
            }
        }
    }

    /// Waits for lines or dropped lines; `nil` when the thread must end.
    private func takeBatch() -> (lines: [UInt8], dropped: UInt64)? {
        mutex.withLock {
            // A failing output is retried with the next line only, or its own losses would keep the
            // thread spinning.
            while pending.isEmpty && (droppedLines == 0 || isOutputFailing) {
                guard state == .running else { return nil }
                mutex.wait(.work)
            }
            guard state != .abandoned || !pending.isEmpty else { return nil }
            // The buffer is freed with the batch, so that a burst holds no memory.
            let lines = pending
            pending = []
            batchBytes = lines.count
            let dropped = droppedLines
            droppedLines = 0
            return (lines, dropped)
        }
    }

    private func notice(of dropped: UInt64) -> [UInt8] {
        format.line(
            at: clock(), level: .warning, label: "hermes.log",
            message: "Log lines were dropped because the output did not keep up",
            metadata: ["log.dropped": "\(dropped)"])
    }

    /// Writes all bytes; returns their number, fewer when the output fails or the log is abandoned.
    ///
    /// After POLLOUT, chunks of PIPE_BUF do not block on a pipe. So with a stalled reader the
    /// thread waits in `poll`, where it can be ended.
    private func write(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            if mutex.withLock({ state == .abandoned }) { return written }
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let (ready, _) = retrying { Int(poll(&request, 1, Self.pollMilliseconds)) }
            if ready == 0 { continue }
            guard ready > 0 else { return written }
            let (count, code) = bytes.withUnsafeBytes { buffer in
                let chunk = UnsafeRawBufferPointer(
                    rebasing: buffer[written..<min(written + Self.chunkBytes, buffer.count)])
                return retrying(mayBeClosed: true) {
                    Glibc.write(descriptor, chunk.baseAddress, chunk.count)
                }
            }
            guard count > 0 || code == EAGAIN else { return written }
            written += max(count, 0)
        }
        return written
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let chunkBytes = 4_096
    private static let pollMilliseconds: CInt = 50

    /// Requires the mutex.
    private func countDropped(_ lines: UInt64) {
        droppedLines += lines
        totalDropped += lines
    }

    /// The number of lines that end in these bytes; a cut first line counts.
    private static func lineCount(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $1 == lineFeed ? $0 + 1 : $0 }
    }
}
