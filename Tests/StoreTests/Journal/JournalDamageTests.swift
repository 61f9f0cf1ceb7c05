import Glibc
import HermesTesting
import Testing

@testable import Store

@Suite("Journal damage")
struct JournalDamageTests {
    /// The appended frames, and the segment's file after them.
    private struct Written {
        var frames: [JournalFolder.Found] = []
        var file: [UInt8] = []

        func end(ofFrame index: Int) -> Int {
            SegmentFormat.roundedUp(
                Int(frames[index].offset) + frames[index].bytes.count, to: 8)
        }
    }

    /// One segment with frames of these sizes; each is synced, or only the first.
    private static func write(
        _ folder: borrowing JournalFolder, sizes: [Int], isSynced: Bool = true
    ) throws -> Written {
        var written = Written()
        var journal = try folder.journal()
        for (number, size) in sizes.enumerated() {
            let bytes = payload(number, count: size)
            let frame =
                isSynced || number == 0 ? try journal.commit(bytes) : try journal.write(bytes)
            written.frames.append(
                .init(segment: frame.segment, offset: frame.payloadOffset, bytes: bytes))
        }
        written.file = try folder.contents(of: "journal-1.segment")
        return written
    }

    // MARK: The tail

    @Test(
        "a last frame cut at any byte is a torn tail, and all before it is there",
        arguments: [true, false])
    func tornAnywhere(isSynced: Bool) throws {
        let folder = try JournalFolder()
        let written = try Self.write(folder, sizes: [300, 5_000, 77], isSynced: isSynced)
        let start = Int(written.frames[2].offset) - 24
        let end = Int(written.frames[2].offset) + 77
        for cut in start..<end {
            // Bytes of an earlier use of the file instead of the rest.
            let rest = [UInt8](repeating: 0xA5, count: end - cut)
            try folder.overwrite("journal-1.segment", at: cut, with: rest)
            let (frames, report) = try folder.replay()
            #expect(frames == [JournalFolder.Found](written.frames[..<2]))
            #expect(report.damage == [])
            // The salt and the offset of the former frame are enough to recognise the frame.
            let torn = cut >= start + 16 ? report.tornTail : nil
            #expect(torn?.segment == (cut >= start + 16 ? 1 : nil))
            #expect(torn.map(\.offset) == (cut >= start + 16 ? written.end(ofFrame: 1) : nil))
            try folder.overwrite("journal-1.segment", with: written.file)
        }
        #expect(try folder.replay().frames == written.frames)
    }

    @Test("a file cut short behind its last synced frame is no damage")
    func truncated() throws {
        let folder = try JournalFolder()
        let written = try Self.write(folder, sizes: [300, 5_000, 77])
        let path = folder.path + "/journal-1.segment"
        try #require(truncate(path, off_t(written.end(ofFrame: 1))) == 0)
        let (frames, report) = try folder.replay()
        #expect(frames == [JournalFolder.Found](written.frames[..<2]))
        #expect(report.damage == [] && report.tornTail == nil)
    }

    @Test("frames that were never synced may be missing in any order: they are given up from there")
    func unsyncedGap() throws {
        let folder = try JournalFolder()
        let written = try Self.write(folder, sizes: [300, 200, 200, 200], isSynced: false)
        let offset = Int(written.frames[2].offset)
        try folder.overwrite("journal-1.segment", at: offset, with: [0xFF, 0xFF])
        let (frames, report) = try folder.replay()
        #expect(frames == [JournalFolder.Found](written.frames[..<2]))
        #expect(report.damage == [])
        #expect(
            report.tornTail
                == TornTail(
                    path: folder.path + "/journal-1.segment", segment: 1, offset: offset - 24,
                    byteCount: written.end(ofFrame: 3) - offset + 24))
    }

    // MARK: The middle

    @Test(
        "a flipped bit costs one frame, which is named, and the others are there",
        arguments: 1...60)
    func flippedBit(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let folder = try JournalFolder()
        let sizes = (0..<8).map { _ in generator.number(in: 1...5_000) }
        let written = try Self.write(folder, sizes: sizes)
        let hit = generator.number(in: 0...6)
        let start = Int(written.frames[hit].offset) - 24
        let length = 24 + sizes[hit]
        let offset = start + generator.number(in: 0...length - 1)
        try folder.overwrite(
            "journal-1.segment", at: offset,
            with: [written.file[offset] ^ 1 << UInt8(generator.number(in: 0...7))])

        var expected = written.frames
        expected.remove(at: hit)
        let from = hit == 0 ? 4_096 : written.end(ofFrame: hit - 1)
        let damage = JournalDamage(
            kind: .unreadableFrames, path: folder.path + "/journal-1.segment", segments: 1...1,
            offset: from, byteCount: Int(written.frames[hit + 1].offset) - 24 - from)
        let (frames, report) = try folder.replay()
        #expect(frames == expected)
        #expect(report.damage == [damage])
        #expect(report.damageCount == 1 && report.damagedByteCount == damage.byteCount)
        #expect(report.tornTail == nil)
        #expect(
            "\(damage)"
                == "\"\(damage.path)\": \(damage.byteCount) bytes at \(from) of segment 1 are damaged"
        )
    }

    @Test("damage in two places, one of several frames, is named twice")
    func twoPlaces() throws {
        let folder = try JournalFolder()
        let written = try Self.write(folder, sizes: [200, 200, 200, 200, 200, 200])
        for frame in [0, 2, 3] {
            try folder.overwrite(
                "journal-1.segment", at: Int(written.frames[frame].offset), with: [0xEE, 0xEE])
        }
        let (frames, report) = try folder.replay()
        #expect(frames == [1, 4, 5].map { written.frames[$0] })
        #expect(report.damage.map(\.offset) == [4_096, written.end(ofFrame: 1)])
    }

    @Test("the end of a segment is damage if its successor knows better")
    func shortSegment() throws {
        let folder = try JournalFolder()
        var frames: [JournalFolder.Found] = []
        do {
            var journal = try folder.journal()
            while frames.last?.segment != 2 {
                let bytes = payload(frames.count, count: 10_000)
                let frame = try journal.commit(bytes)
                frames.append(
                    .init(segment: frame.segment, offset: frame.payloadOffset, bytes: bytes))
            }
        }
        let last = frames[frames.count - 2]
        try folder.overwrite("journal-1.segment", at: Int(last.offset) + 9_999, with: [0xEE])
        frames.remove(at: frames.count - 2)
        let (found, report) = try folder.replay()
        #expect(found == frames)
        let damage = try #require(report.damage.first)
        #expect(report.damageCount == 1)
        #expect(damage.kind == .shortSegment && damage.segments == 1...1)
        #expect(
            damage.offset + damage.byteCount
                == SegmentFormat.roundedUp(Int(last.offset) + 10_000, to: 8))

        // The same for a truncated file.
        try #require(truncate(folder.path + "/journal-1.segment", off_t(last.offset)) == 0)
        #expect(try folder.replay().report.damage == [damage])
    }

    @Test("a missing segment is named, and the others are replayed", arguments: 1...4)
    func missingSegment(missing: UInt64) throws {
        let folder = try JournalFolder()
        try Self.writeSegments(4, folder)
        unlink(folder.path + "/journal-\(missing).segment")
        let (frames, report) = try folder.replay()
        #expect(frames.map(\.segment) == (1...4).filter { $0 != missing })
        // A missing newest segment cannot be noticed.
        let expected: [ClosedRange<UInt64>?] = missing == 4 ? [] : [missing...missing]
        #expect(report.damage.map(\.segments) == expected)
        #expect(report.damage.allSatisfy { $0.kind == .missingSegments })
        // Segments that the database has applied are not missing.
        #expect(try folder.replay(appliedSegment: 3).report.damage == [])
    }

    @Test("a missing journal is noticed by the database that used it")
    func missingJournal() throws {
        let folder = try JournalFolder()
        try Self.writeSegments(3, folder)
        for number in 1...3 { unlink(folder.path + "/journal-\(number).segment") }
        #expect(try folder.replay(appliedSegment: 2).report.damage.map(\.segments) == [2...2])
        var journal = try folder.journal(appliedSegment: 2)
        let frame = try journal.commit(payload(1))
        #expect(frame.segment == 3)
        #expect(try folder.replay(appliedSegment: 2).report.damage == [])
    }

    @Test("a database older than its journal notices segments freed since")
    func olderDatabase() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
            try journal.beginSegment()
            try journal.commit(payload(2))
        }
        do {
            var journal = try folder.journal()
            journal.free(through: 2)
            try journal.commit(payload(3))
        }
        #expect(try folder.replay(appliedSegment: 2).report.damage == [])
        let (frames, report) = try folder.replay(appliedSegment: 1)
        #expect(frames.map(\.bytes) == [payload(3)])
        // Segment 2's file was reused for segment 3.
        #expect(report.damage.map(\.segments) == [2...2])
        #expect(try folder.replay().report.damage.count == 1)
    }

    @Test("a damaged header costs its segment, and its file is set aside")
    func damagedHeader() throws {
        let folder = try JournalFolder()
        try Self.writeSegments(3, folder)
        try folder.overwrite(
            "journal-2.segment", with: [UInt8](repeating: 0x5A, count: 4_096))
        let (frames, report) = try folder.replay()
        #expect(frames.map(\.segment) == [1, 3])
        #expect(report.damage.map(\.kind) == [.unreadableHeader, .missingSegments])
        #expect(report.damage.first?.path == folder.path + "/damaged-1.segment")
        #expect(report.damage.last?.segments == 2...2)
        #expect(
            try folder.names() == ["damaged-1.segment", "journal-1.segment", "journal-3.segment"])
        let journal = try folder.opened()
        #expect(journal.setAsideFiles == [folder.path + "/damaged-1.segment"])
    }

    @Test("a copy of a segment is not replayed twice")
    func duplicate() throws {
        let folder = try JournalFolder()
        try Self.writeSegments(2, folder)
        do {
            let copy = try folder.contents(of: "journal-1.segment")
            let file = try SegmentFile.make(
                folder.path + "/journal-7.segment", capacity: copy.count,
                in: JournalDirectory(folder.path))
            #expect(copy.withUnsafeBytes { file.write($0, at: 0) } == nil)
        }
        let (frames, report) = try folder.replay()
        #expect(frames.map(\.segment) == [1, 2])
        #expect(report.damage.map(\.kind) == [.duplicateSegment])
        #expect(try folder.names().contains("damaged-1.segment"))
    }

    @Test("a file with damage is set aside when its segment is freed, and not used again")
    func setAside() throws {
        let folder = try JournalFolder()
        try Self.writeSegments(3, folder)
        try folder.overwrite("journal-2.segment", at: 4_096, with: [0xEE, 0xEE])
        var journal = try folder.opened()
        let report = try journal.replay { _, _, _ in }
        #expect(report.damageCount == 1)
        #expect(journal.setAsideFiles == [])
        journal.free(through: 3)
        #expect(journal.setAsideFiles == [folder.path + "/damaged-1.segment"])
        #expect(
            try folder.names() == ["damaged-1.segment", "journal-1.segment", "journal-3.segment"])
        try journal.commit(payload(9))
        #expect(
            try folder.names() == ["damaged-1.segment", "journal-1.segment", "journal-3.segment"])
    }

    @Test("a loss that was accepted is not told of again, and its files stay")
    func acceptedLoss() throws {
        let folder = try JournalFolder()
        let accepted = ["damaged-1.segment.accepted", "damaged-2.segment.accepted"]
        for round in 1...2 {
            try Self.writeSegments(1, folder)
            let name = try #require(folder.names().last)
            try folder.overwrite(name, with: [UInt8](repeating: 0x5A, count: 4_096))
            var journal = try folder.journal()
            let path = folder.path + "/damaged-\(round).segment"
            #expect(journal.setAsideFiles == [path])
            let answer = journal.acceptLoss()
            #expect(answer == [path])
            #expect(journal.setAsideFiles == [])
            #expect(try folder.names() == [String](accepted[..<round]))
            let next = try folder.opened()
            #expect(next.setAsideFiles == [])
        }
    }

    @Test(
        "random bytes over the frames never yield a frame that was not written", arguments: 1...40)
    func noise(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let folder = try JournalFolder()
        let written = try Self.write(
            folder, sizes: (0..<9).map { _ in generator.number(in: 1...3_000) })
        for _ in 0..<generator.number(in: 1...6) {
            let offset = generator.number(in: 4_096...written.end(ofFrame: 8) - 1)
            try folder.overwrite(
                "journal-1.segment", at: offset,
                with: generator.bytes(generator.number(in: 1...4_000)))
        }
        let (frames, report) = try folder.replay()
        let known = Set(written.frames)
        #expect(frames.allSatisfy(known.contains))
        #expect(frames == frames.sorted { $0.offset < $1.offset })
        // Each missing frame is reported, unless it is the end of the newest segment.
        if let last = frames.last, last != written.frames.last {
            #expect(report.damageCount > 0 || written.frames.starts(with: frames))
        }
    }

    /// Segments of one frame each.
    private static func writeSegments(_ count: Int, _ folder: borrowing JournalFolder) throws {
        var journal = try folder.journal()
        for number in 1...count {
            try journal.beginSegment()
            try journal.commit(payload(number))
        }
    }
}
