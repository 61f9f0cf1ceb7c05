import Glibc
import Testing

/// A pipe in place of standard error; closes its open ends on release.
///
/// Unchecked, because only the test's own thread opens and closes each end.
class TestPipe: @unchecked Sendable {
    fileprivate(set) var readEnd: CInt
    let writeEnd: CInt

    convenience init() throws {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        self.init(readEnd: ends[0], writeEnd: ends[1])
    }

    fileprivate init(readEnd: CInt, writeEnd: CInt) {
        self.readEnd = readEnd
        self.writeEnd = writeEnd
    }

    deinit {
        closeReadEnd()
        _ = close(writeEnd)
    }

    func closeReadEnd() {
        guard readEnd >= 0 else { return }
        _ = close(readEnd)
        readEnd = -1
    }

    /// Makes the pipe as small as possible; returns the bytes that fit without a reader.
    func shrink() throws -> Int {
        // F_SETPIPE_SZ, which the header defines only with _GNU_SOURCE.
        let size = fcntl(writeEnd, 1_031, 4_096)
        try #require(size > 0)
        return Int(size)
    }

    /// True when input arrives within 5 s.
    func hasInput() -> Bool {
        var request = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 5_000) > 0
    }

    /// The first `count` lines, waiting up to 5 s for each read.
    func lines(_ count: Int) -> [String] {
        lines { $0.count >= count }
    }

    /// Lines until there are enough, waiting up to 5 s for each read.
    func lines(until isEnough: ([String]) -> Bool) -> [String] {
        read(timeoutMilliseconds: 5_000, until: isEnough)
    }

    /// All lines until 500 ms pass without one.
    func drain() -> [String] {
        read(timeoutMilliseconds: 500) { _ in false }
    }

    /// Judges the complete lines after each read.
    private func read(timeoutMilliseconds: CInt, until isEnough: ([String]) -> Bool) -> [String] {
        var bytes: [UInt8] = []
        var lines: [String] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var request = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        while !isEnough(lines), poll(&request, 1, timeoutMilliseconds) > 0 {
            let size = Glibc.read(readEnd, &chunk, chunk.count)
            guard size > 0 else { break }
            bytes += chunk[..<size]
            let pieces = bytes.split(
                separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            lines += pieces.dropLast().map { String(decoding: $0, as: UTF8.self) }
            bytes = Array(pieces.last ?? [])
        }
        return lines
    }
}

/// A small named pipe whose reader can change.
final class TestFIFO: TestPipe, @unchecked Sendable {
    private let folder: String
    private var path: String { folder + "/fifo" }

    init() throws {
        var template = Array("/tmp/hermes-log-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try #require(mkfifo(folder + "/fifo", 0o600) == 0)
        let readEnd = open(folder + "/fifo", O_RDONLY | O_NONBLOCK)
        super.init(readEnd: readEnd, writeEnd: open(folder + "/fifo", O_WRONLY))
        try #require(readEnd >= 0 && writeEnd >= 0)
        _ = try shrink()
    }

    deinit {
        _ = unlink(path)
        _ = rmdir(folder)
    }

    func openReadEnd() throws {
        closeReadEnd()
        readEnd = open(path, O_RDONLY | O_NONBLOCK)
        try #require(readEnd >= 0)
    }
}
