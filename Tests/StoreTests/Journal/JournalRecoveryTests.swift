import Testing

@testable import Store

@Suite("Journal: frames that a start cannot prove to be on disk")
struct JournalRecoveryTests {
    @Test("the last frames are written again, so the state of the old ones does not matter")
    func writesAgain() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
            try journal.commit(payload(2))
            // Proves the two frames before it, and was written together with the next.
            try journal.write(payload(3))
            try journal.write(payload(4))
        }
        let (frames, report) = try folder.replayAndBegin()
        #expect(frames.map(\.segment) == [1, 1, 2, 2])
        #expect(frames.map(\.bytes) == (1...4).map { payload($0) })
        #expect(report.segments == [1] && report.frameCount == 4)
        // The page cache held what the disk has lost.
        try folder.overwrite(
            "journal-1.segment", at: 3 * 4_096, with: Array(repeating: 0, count: 4_096))
        let next = try folder.replay()
        #expect(next.frames == frames)
        #expect(next.report.damage == [] && next.report.tornTail == nil)
    }

    @Test("until the new segment is named the old frames count, and once only")
    func crashBetween() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            for number in 1...3 { try journal.commit(payload(number)) }
        }
        let before = try folder.replay().frames
        _ = try folder.replayAndBegin()
        // The crash cut off the header.
        try folder.overwrite("journal-2.segment", with: Array(repeating: 0, count: 4_096))
        let (frames, report) = try folder.replay()
        #expect(frames == before)
        #expect(report.damage == [])
    }

    @Test("a segment of which nothing is proven is not missed", arguments: [1, 3])
    func onlyUnproven(starts: Int) throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        for start in 1...starts {
            let (frames, report) = try folder.replayAndBegin()
            #expect(frames.map(\.segment) == [UInt64(start) + 1])
            #expect(frames.map(\.bytes) == [payload(1)])
            #expect(report.damage == [])
        }
        #expect(try folder.names().count == 2, "one that is left, and one that is free")
    }

    @Test("starts without any write in between neither lose nor gather anything")
    func emptyStarts() throws {
        let folder = try JournalFolder()
        for _ in 1...5 {
            let (frames, report) = try folder.replayAndBegin()
            #expect(frames == [] && report.damage == [])
        }
        #expect(try folder.names().count <= 2)
    }

    @Test("a frame larger than a segment is written again to a file of its own size")
    func oversized() throws {
        let folder = try JournalFolder()
        let large = payload(1, count: 300_000)
        do {
            var journal = try folder.journal()
            try journal.commit(payload(0))
            try journal.commit(large)
        }
        let (frames, _) = try folder.replayAndBegin()
        #expect(frames.map(\.segment) == [1, 3])
        #expect(frames.map(\.bytes) == [payload(0), large])
        let next = try folder.replay()
        #expect(next.frames == frames && next.report.damage == [])
    }

    @Test("damage before the last frames is reported by each start that finds it")
    func damage() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            for number in 1...4 { try journal.commit(payload(number)) }
        }
        try folder.overwrite("journal-1.segment", at: 2 * 4_096 + 100, with: [1, 2, 3])
        for _ in 1...2 {
            let (frames, report) = try folder.replayAndBegin()
            #expect(frames.map(\.bytes) == [payload(1), payload(3), payload(4)])
            #expect(report.damage.map(\.kind) == [.unreadableFrames])
        }
    }

    @Test(
        "a disk without room refuses the start, and the next one finds everything",
        .enabled(if: TestVolume.isPermitted, "mounting a tmpfs needs root"))
    func noSpace() throws {
        let volume = try TestVolume(bytes: 128 << 10)
        let folder = try JournalFolder(in: volume.path)
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        try volume.fill()
        let failure = #expect(throws: StoreFailure.self) { try folder.replayAndBegin() }
        #expect(failure?.kind == .outOfSpace)
        try volume.empty()
        #expect(try folder.replayAndBegin().frames.map(\.bytes) == [payload(1)])
    }
}
