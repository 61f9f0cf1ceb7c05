import Glibc
import Logging
import Testing

@testable import OperatorLog

@Suite("OperatorLog")
struct OperatorLogTests {
    private let output: TestPipe

    init() throws {
        output = try TestPipe()
    }

    private func start(
        level: Logger.Level = .info, format: LogFormat = .text,
        capacityBytes: Int = OperatorLog.defaultCapacityBytes
    ) throws -> OperatorLog {
        try OperatorLog.start(
            level: level, format: format, descriptor: output.writeEnd,
            capacityBytes: capacityBytes, clock: { LogFormatTests.time })
    }

    @Test("writes lines in order, and flush waits for them")
    func order() throws {
        let log = try start()
        let logger = log.logger(label: "test")
        for number in 0..<100 { logger.info("Line", metadata: ["n": "\(number)"]) }
        #expect(log.flush())
        // Without waiting: after flush, the output is in the pipe.
        #expect(
            output.lines(100)
                == (0..<100).map { "2026-11-21T03:04:05.123Z INFO  Line n=\($0)" })
        #expect(log.droppedLines == 0)
    }

    @Test("lines of many threads stay whole")
    func threads() async throws {
        let log = try start()
        let logger = log.logger(label: "test")
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<100 {
                        logger.info("Line", metadata: ["n": "\(task)/\(number)"])
                    }
                }
            }
        }
        let prefix = "2026-11-21T03:04:05.123Z INFO  Line n="
        let lines = output.lines(800)
        #expect(lines.allSatisfy { $0.hasPrefix(prefix) })
        let expected = (0..<8).flatMap { task in (0..<100).map { "\(prefix)\(task)/\($0)" } }
        #expect(lines.sorted() == expected.sorted())
    }

    @Test("the level changes for all loggers at run time, but for one with a level of its own")
    func levels() throws {
        let log = try start(level: .warning)
        let logger = log.logger(label: "test")
        var verbose = log.logger(label: "test")
        verbose.logLevel = .trace
        logger.info("hidden")
        verbose.debug("own level")
        #expect(logger.logLevel == .warning)
        log.level = .debug
        #expect(log.level == .debug)
        #expect(logger.logLevel == .debug)
        #expect(verbose.logLevel == .trace)
        logger.debug("shown")
        log.level = .critical
        logger.error("hidden again")
        log.flush()
        #expect(output.lines(2).map { $0.suffix(9) } == ["own level", "EBUG shown".suffix(9)])
    }

    @Test("metadata of logger, provider, error and event are merged, the later winning")
    func metadata() throws {
        struct Failure: Error, CustomStringConvertible { let description = "out of paper" }
        let log = try start()
        var logger = log.logger(label: "test")
        logger[metadataKey: "a"] = "logger"
        logger[metadataKey: "b"] = "logger"
        logger[metadataKey: "c"] = "logger"
        logger.handler.metadataProvider = .init { ["b": "provider", "c": "provider"] }
        logger.info("Merged", error: Failure(), metadata: ["c": "event"])
        #expect(logger[metadataKey: "a"] == "logger")
        log.flush()
        #expect(
            output.lines(1) == [
                "2026-11-21T03:04:05.123Z INFO  Merged a=logger b=provider c=event error=\"out of paper\""
            ])
    }

    @Test("JSON carries the logger's label")
    func json() throws {
        let log = try start(format: .json)
        log.logger(label: "admin").notice("Hello")
        log.flush()
        #expect(
            output.lines(1) == [
                "{\"time\":\"2026-11-21T03:04:05.123Z\",\"level\":\"notice\",\"logger\":\"admin\",\"message\":\"Hello\"}"
            ])
    }

    /// Hangs if a caller waits for the output, which is not read meanwhile.
    @Test("a stalled output blocks no caller; dropped lines are counted once there is room")
    func overflow() throws {
        let pipeBytes = try output.shrink()
        let log = try start(capacityBytes: 16_384)
        let logger = log.logger(label: "test")
        for number in 0..<5_000 { logger.info("Line", metadata: ["n": "\(number)"]) }
        #expect(!log.flush(timeout: .milliseconds(20)))

        let dropped = log.droppedLines
        let lineBytes = "2026-11-21T03:04:05.123Z INFO  Line n=1234\n".utf8.count
        // All but the lines in the pipe and the buffer.
        #expect(dropped >= UInt64(5_000 - (pipeBytes + 16_384) / (lineBytes - 3) - 1))
        #expect(dropped < 5_000)

        let lines = output.lines { accounted(for: $0) >= 5_000 }
        #expect(accounted(for: lines) == 5_000)
        let notices = lines.filter { $0.contains("log.dropped=") }
        #expect(!notices.isEmpty)
        #expect(notices.allSatisfy { $0.hasPrefix("2026-11-21T03:04:05.123Z WARNING Log lines") })
        #expect(log.droppedLines == dropped)

        logger.info("Back")
        #expect(log.flush())
        #expect(output.lines(1).last?.hasSuffix("INFO  Back") == true)
    }

    /// The number of lines, including those counted as dropped.
    private func accounted(for lines: [String]) -> Int {
        lines.reduce(0) { sum, line in
            guard line.contains("log.dropped=") else { return sum + 1 }
            return sum + (line.split(separator: "=").last.flatMap { Int($0) } ?? 0)
        }
    }

    @Test("a line larger than the buffer is dropped and counted")
    func oversized() throws {
        let log = try start(capacityBytes: 256)
        let logger = log.logger(label: "test")
        logger.info("Large", metadata: ["x": "\(String(repeating: "x", count: 300))"])
        #expect(log.droppedLines == 1)
        logger.info("Small")
        log.flush()
        let lines = output.lines(2)
        // Their order depends on the speed of the log's thread.
        #expect(lines.count == 2)
        #expect(lines.contains { $0.hasSuffix("Small") })
        #expect(lines.contains { $0.hasSuffix("log.dropped=1") })
    }

    @Test("a closed output kills nothing and loses lines by number")
    func closedOutput() throws {
        output.closeReadEnd()
        let log = try start()
        let logger = log.logger(label: "test")
        for _ in 0..<10 { logger.info("Lost") }
        #expect(log.flush())
        #expect(log.droppedLines == 10)
    }

    @Test("a line that a failing output cut off is counted, and the next one begins a new line")
    func cutOff() throws {
        let fifo = try TestFIFO()
        let log = try OperatorLog.start(
            level: .info, format: .text, descriptor: fifo.writeEnd,
            capacityBytes: OperatorLog.defaultCapacityBytes, clock: { LogFormatTests.time })
        let logger = log.logger(label: "test")
        let value = Logger.MetadataValue.string(String(repeating: "x", count: 250))
        // About 16 KB, of which the pipe takes 4 KB.
        logger.info("Long", metadata: ["x": .array(Array(repeating: value, count: 64))])
        #expect(fifo.hasInput())
        fifo.closeReadEnd()
        #expect(log.flush())
        #expect(log.droppedLines == 1)

        try fifo.openReadEnd()
        logger.info("Next")
        let lines = fifo.lines(3)
        #expect(lines.count == 3)
        #expect(lines.first?.hasSuffix("xxx") == true)
        #expect(lines.dropFirst().first == "2026-11-21T03:04:05.123Z INFO  Next")
        #expect(lines.last?.hasSuffix("log.dropped=1") == true)
    }

    @Test("stop writes pending lines, and later lines are dropped")
    func stop() throws {
        let log = try start()
        let logger = log.logger(label: "test")
        logger.info("Before")
        log.stop()
        logger.info("After")
        log.stop()
        #expect(log.flush())
        #expect(log.droppedLines == 1)
        #expect(output.drain().map { $0.suffix(6) } == ["Before"])
    }

    @Test("stop ends on a stalled output, too")
    func stopStalled() throws {
        _ = try output.shrink()
        let log = try start()
        let logger = log.logger(label: "test")
        for _ in 0..<1_000 { logger.info("Line") }
        log.stop(timeout: .milliseconds(20))
        #expect(log.droppedLines > 0)
        #expect(UInt64(output.drain().count) <= 1_000)
    }

    @Test("a released log writes its lines first")
    func deinitialised() throws {
        do {
            let log = try start()
            log.logger(label: "test").info("Last words")
        }
        #expect(output.drain().count == 1)
    }
}
