import Glibc
import Testing

@testable import Store

@Suite("Journal on a failing disk")
struct JournalFailureTests {
    @Test("after a failed write the journal refuses everything until it is restarted")
    func failedWrite() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.commit(payload(1))
        try journal.breakActiveFile()
        let failure = try #require(throws: StoreFailure.self) { try journal.write(payload(2)) }
        #expect(failure.kind == .outOfSpace)
        #expect(
            "\(failure)"
                == "cannot write \"\(folder.path)/journal-1.segment\": no space left on device "
                + "(ENOSPC). Free space on this file system.")
        #expect(journal.failure == failure)
        #expect(throws: failure) { try journal.write(payload(2)) }
        #expect(throws: failure) { try journal.sync() }
        #expect(throws: failure) { try journal.beginSegment() }
    }

    @Test("a failed sync is not repeated; a new file takes the unacknowledged frames")
    func failedSync() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
            // Written and perhaps on disk, but never acknowledged.
            try journal.write(payload(2))
            try journal.breakActiveFile()
            #expect(throws: StoreFailure.self) { try journal.sync() }
            try journal.restart()
            #expect(journal.failure == nil)
            #expect(journal.segmentNumbers == [1, 2])
            // A header and one frame, and another header.
            #expect(journal.usedBytes == 4_096 + 224 + 4_096)
            try journal.commit(payload(2))
            try journal.commit(payload(3))
        }
        let (frames, report) = try folder.replay()
        #expect(frames.map(\.segment) == [1, 2, 2])
        #expect(frames.map(\.bytes) == [payload(1), payload(2), payload(3)])
        #expect(report.damage == [] && report.tornTail == nil)
    }

    @Test("before the restart has reached the disk, the frames that were not acknowledged count")
    func crashBeforeRestart() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.commit(payload(1))
        try journal.write(payload(2))
        try journal.breakActiveFile()
        #expect(throws: StoreFailure.self) { try journal.sync() }
        #expect(try folder.replay().frames.map(\.bytes) == [payload(1), payload(2)])
    }

    @Test("a segment that failed before its first sync is not missed")
    func failedFirst() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
            try journal.beginSegment()
            try journal.write(payload(2))
            try journal.breakActiveFile()
            #expect(throws: StoreFailure.self) { try journal.sync() }
            try journal.restart()
            try journal.commit(payload(2))
        }
        // Its file may be on disk or not.
        for _ in 1...2 {
            let (frames, report) = try folder.replay()
            #expect(frames.map(\.segment) == [1, 3])
            #expect(frames.map(\.bytes) == [payload(1), payload(2)])
            #expect(report.damage == [])
            unlink(folder.path + "/journal-2.segment")
        }
    }

    @Test("a failed file is deleted, not used again")
    func failedFileIsDeleted() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.commit(payload(1))
        try journal.breakActiveFile()
        #expect(throws: StoreFailure.self) { try journal.write(payload(2)) }
        try journal.restart()
        try journal.commit(payload(2))
        journal.free(through: 1)
        #expect(try folder.names() == ["journal-2.segment"])
    }

    @Test("synced frames of a failed segment can still be read", arguments: [0, 1])
    func readsSyncedPart(restarts: Int) throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        let frame = try journal.commit(payload(1))
        try journal.beginSegment()
        try journal.write(payload(2))
        try journal.breakActiveFile()
        #expect(throws: StoreFailure.self) { try journal.sync() }
        if restarts > 0 { try journal.restart() }
        let found = journal.reader(of: 1)
        let reader = try #require(found)
        let location = SegmentChanges.Location(
            segment: 1, offset: frame.payloadOffset, count: 200)
        #expect(try reader.bytes(of: location) == payload(1))
    }

    @Test(
        "a full disk is told from other errors, and the journal continues in its existing files",
        .enabled(if: TestVolume.isPermitted, "mounting a tmpfs needs root"))
    func noSpace() throws {
        let volume = try TestVolume(bytes: 256 << 10)
        let folder = try JournalFolder(in: volume.path)
        var journal = try folder.journal()
        try journal.commit(payload(1))
        try journal.beginSegment()
        try journal.commit(payload(2))
        // Three segments of 64 KiB do not fit beside the file system's own data.
        try volume.fill()
        let failure = #expect(throws: StoreFailure.self) { try journal.beginSegment() }
        #expect(failure?.kind == .outOfSpace)
        #expect(journal.failure == nil)
        #expect(try folder.names() == ["journal-1.segment", "journal-2.segment"])
        let request = journal.spareRequest()
        let spare = try #require(request)
        #expect(throws: StoreFailure.self) { try spare.make() }
        journal.finishSpare(nil)

        // Preallocated space is available; the failed number is not missing.
        try journal.commit(payload(3))
        while !journal.isFull(for: 200) { try journal.commit(payload(4)) }
        journal.free(through: 1)
        try journal.beginSegment()
        try journal.commit(payload(5))
        let (frames, report) = try folder.replay(appliedSegment: 1)
        #expect(frames.last?.bytes == payload(5))
        #expect(frames.map(\.segment).last.map { $0 > 2 } == true)
        #expect(report.damage == [])
    }

    @Test(
        "a restart on a full disk takes a file that never failed",
        .enabled(if: TestVolume.isPermitted, "mounting a tmpfs needs root"))
    func restartWithoutSpace() throws {
        let volume = try TestVolume(bytes: 256 << 10)
        let folder = try JournalFolder(in: volume.path)
        var journal = try folder.journal()
        try journal.commit(payload(1))
        try journal.beginSegment()
        try journal.commit(payload(2))
        journal.free(through: 1)
        try volume.fill()
        try journal.breakActiveFile()
        #expect(throws: StoreFailure.self) { try journal.write(payload(3)) }
        try journal.restart()
        try journal.commit(payload(3))
        let (frames, report) = try folder.replay(appliedSegment: 1)
        #expect(frames.map(\.bytes) == [payload(2), payload(3)])
        #expect(report.damage == [])

        // Without it the segment has no file; a later attempt creates one.
        try journal.breakActiveFile()
        #expect(throws: StoreFailure.self) { try journal.write(payload(4)) }
        let failure = #expect(throws: StoreFailure.self) { try journal.restart() }
        #expect(failure?.kind == .outOfSpace)
        try volume.empty()
        try journal.restart()
        try journal.commit(payload(4))
        #expect(try folder.replay(appliedSegment: 1).frames.last?.bytes == payload(4))
    }

    @Test(
        "a directory that cannot be written is named",
        .enabled(if: TestVolume.isPermitted, "mounting a tmpfs needs root"))
    func readOnly() throws {
        let volume = try TestVolume(bytes: 1 << 20)
        let folder = try JournalFolder(in: volume.path)
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        try volume.makeReadOnly()
        let failure = #expect(throws: StoreFailure.self) { _ = try folder.opened() }
        #expect(failure?.kind == .permissions)
        #expect(failure?.code == EROFS)
        #expect(failure?.path == folder.path + "/journal-1.segment")
        try volume.makeWritable()
    }

    @Test("an error names call, file, reason and advice, without control characters")
    func failureText() {
        let failure = StoreFailure(
            operation: "open", path: "/data/\u{1B}[31m\"x\"\n", errno: EACCES)
        #expect(failure.kind == .permissions)
        #expect(
            "\(failure)" == #"""
                cannot open "/data/\u{1B}[31m\"x\"\n": permission denied (EACCES). Give the user \#
                of the broker its own data directory (mode 0700).
                """#)
        let foreign = StoreFailure(
            operation: "query", path: "a\\b", reason: "no such table: \"x\"", code: 1,
            kind: .damaged)
        #expect("\(foreign)" == #"cannot query "a\\b": no such table: "x""#)
        #expect(StoreFailure(operation: "x", path: "", errno: EDQUOT).kind == .outOfSpace)
        #expect(StoreFailure(operation: "x", path: "", errno: EIO).kind == .inputOutput)
    }
}
