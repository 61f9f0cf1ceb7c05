import Glibc
import Testing

@testable import Store

/// A new directory with a journal, removed when it leaves scope.
struct JournalFolder: ~Copyable {
    /// A frame returned by a replay.
    struct Found: Hashable, Sendable {
        var segment: UInt64
        var offset: UInt32
        var bytes: [UInt8]
    }

    static let segmentBytes = 65_536

    let root: String
    var path: String { root + "/journal" }

    init(in parent: String = "/tmp") throws {
        var template = Array("\(parent)/hermes-journal.XXXXXX".utf8CString)
        root = String(cString: try #require(mkdtemp(&template)))
    }

    deinit {
        Self.removeFiles(in: path)
        _ = rmdir(path)
        Self.removeFiles(in: root)
        _ = rmdir(root)
    }

    /// A journal of small segments after its replay, whose result is dropped.
    func journal(appliedSegment: UInt64 = 0, segmentCount: Int = 8) throws -> Journal {
        var journal = try opened(appliedSegment: appliedSegment, segmentCount: segmentCount)
        _ = try journal.replay { _, _, _ in }
        return journal
    }

    func opened(
        appliedSegment: UInt64 = 0, segmentBytes: Int = JournalFolder.segmentBytes,
        segmentCount: Int = 8
    ) throws -> Journal {
        try Journal(
            directory: path,
            options: JournalOptions(segmentBytes: segmentBytes, segmentCount: segmentCount),
            appliedSegment: appliedSegment)
    }

    /// The result of a replay at the next start.
    func replay(appliedSegment: UInt64 = 0) throws -> (frames: [Found], report: ReplayReport) {
        var journal = try opened(appliedSegment: appliedSegment)
        var frames: [Found] = []
        let report = try journal.replay { segment, offset, bytes in
            frames.append(Found(segment: segment, offset: offset, bytes: [UInt8](bytes)))
        }
        return (frames, report)
    }

    /// The result of the next start, which continues in a new segment.
    func replayAndBegin() throws -> (frames: [Found], report: ReplayReport) {
        var journal = try opened()
        var frames: [Found] = []
        let report = try journal.replayAndBegin { segment, offset, bytes in
            frames.append(Found(segment: segment, offset: offset, bytes: [UInt8](bytes)))
        }
        return (frames, report)
    }

    /// The names of the journal's files, sorted.
    func names() throws -> [String] { try Self.names(in: path).sorted() }

    func contents(of name: String) throws -> [UInt8] {
        let file = try SegmentFile.open("\(path)/\(name)")
        var bytes = [UInt8](repeating: 0, count: file.capacity)
        let count = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        try #require(count == bytes.count)
        return bytes
    }

    func overwrite(_ name: String, at offset: Int = 0, with bytes: [UInt8]) throws {
        let file = try SegmentFile.open("\(path)/\(name)")
        let failure = bytes.withUnsafeBytes { file.write($0, at: offset) }
        if let failure { throw failure }
    }

    private static func removeFiles(in path: String) {
        guard let names = try? names(in: path) else { return }
        for name in names { unlink("\(path)/\(name)") }
    }

    private static func names(in path: String) throws -> [String] {
        let stream = try #require(opendir(path))
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}

extension Journal {
    /// Appends one frame without a sync, to the next segment if this one is full.
    @discardableResult
    mutating func write(_ bytes: [UInt8]) throws -> AppendedFrame {
        if isFull(for: bytes.count) { try beginSegment(payloadBytes: bytes.count) }
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(StoreFailure) in try append([bytes]) }
        }
        return try result.get()
    }

    /// Appends one frame and syncs it.
    @discardableResult
    mutating func commit(_ bytes: [UInt8]) throws -> AppendedFrame {
        let frame = try write(bytes)
        try sync()
        return frame
    }

    /// Makes all further writes or syncs of the active segment fail by replacing its descriptor.
    /// The journal's own file keeps its content.
    func breakActiveFile() throws {
        let file = try #require(segments.last?.file)
        // Every write to this device fails for lack of space, and it cannot be synced.
        let full = open("/dev/full", O_RDWR | O_CLOEXEC)
        try #require(full >= 0)
        try #require(dup2(full, file.descriptor) == file.descriptor)
        close(full)
    }
}

/// A payload that contains its number.
func payload(_ number: Int, count: Int = 200) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number &* 7 &+ $0 &* 13) }
}
