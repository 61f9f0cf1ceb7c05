import Glibc
import HermesTesting
import Testing

@testable import Store

@Suite("Journal")
struct JournalTests {
    @Test("replays the appended frames in order, across segments", arguments: 1...8)
    func roundTrip(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let folder = try JournalFolder()
        var expected: [JournalFolder.Found] = []
        do {
            var journal = try folder.journal()
            for _ in 0..<100 {
                let bytes = generator.bytes(generator.number(in: 1...9_000))
                let frame = try journal.write(bytes)
                expected.append(
                    .init(segment: frame.segment, offset: frame.payloadOffset, bytes: bytes))
                if !generator.once(in: 3) { try journal.sync() }
            }
        }
        let (frames, report) = try folder.replay()
        #expect(frames == expected)
        #expect(report.frameCount == 100)
        #expect(report.byteCount == expected.reduce(0) { $0 + $1.bytes.count })
        #expect(report.segments == Array(1...(expected.last?.segment ?? 0)))
        #expect(report.segments.count > 5)
        #expect(report.damage == [] && report.tornTail == nil)
    }

    @Test("pieces become one frame, however many there are")
    func pieces() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.beginSegment()
        let bytes = payload(1, count: 5_000)
        let result = bytes.withUnsafeBytes { bytes in
            // More pieces than the kernel takes in one call, and an empty one.
            let pieces = (0..<2_500).map {
                UnsafeRawBufferPointer(rebasing: bytes[$0 * 2..<$0 * 2 + 2])
            }
            return Result { () throws(StoreFailure) in
                try journal.append([UnsafeRawBufferPointer(start: nil, count: 0)] + pieces)
            }
        }
        let frame = try result.get()
        try journal.sync()
        let (frames, _) = try folder.replay()
        #expect(frames == [.init(segment: 1, offset: frame.payloadOffset, bytes: bytes)])
    }

    @Test("a synced block is never written again, and unsynced frames share one")
    func blocks() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        let offsets = try [
            journal.commit(payload(1)), journal.commit(payload(2)), journal.write(payload(3)),
            journal.write(payload(4)), journal.commit(payload(5)),
        ].map { Int($0.payloadOffset) - 24 }
        #expect(offsets == [4_096, 8_192, 12_288, 12_512, 12_736])
    }

    @Test("files are reused, and their former content never counts")
    func recycling() throws {
        let folder = try JournalFolder()
        var expected: [JournalFolder.Found] = []
        var applied: UInt64 = 0
        do {
            var journal = try folder.journal(segmentCount: 3)
            for number in 0..<600 {
                // Equal frames at equal offsets: only the salt distinguishes an old one.
                let frame = try journal.commit(payload(number))
                if frame.segment > applied + 2 {
                    applied = frame.segment - 1
                    journal.free(through: applied)
                    expected.removeAll()
                }
                if frame.segment > applied {
                    expected.append(
                        .init(
                            segment: frame.segment, offset: frame.payloadOffset,
                            bytes: payload(number)))
                }
            }
            let numbers = journal.segmentNumbers
            #expect(numbers.first == applied + 1)
        }
        #expect(
            try folder.names() == ["journal-1.segment", "journal-2.segment", "journal-3.segment"])
        let (frames, report) = try folder.replay(appliedSegment: applied)
        #expect(frames == expected)
        #expect(applied > 20 && !expected.isEmpty)
        #expect(report.damage == [] && report.tornTail == nil)
    }

    @Test("frames of a use that ended before its header reached the disk never count")
    func reusedNumber() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            for number in 1...3 { try journal.commit(payload(number)) }
        }
        // The same number in the same file, as after such a crash.
        let header = SegmentHeader(number: 1, salt: 99, previousNumber: 0, previousEnd: 0)
        try folder.overwrite("journal-1.segment", with: header.block())
        let (frames, report) = try folder.replay()
        #expect(frames == [])
        #expect(report.damage == [] && report.tornTail == nil)
    }

    @Test("a start continues with a higher number, after the found frames")
    func restarts() throws {
        let folder = try JournalFolder()
        for round in 1...5 {
            var journal = try folder.opened(segmentCount: 2)
            var found: [[UInt8]] = []
            _ = try journal.replay { _, _, bytes in found.append([UInt8](bytes)) }
            #expect(found == (1..<round).map { payload($0) })
            let frame = try journal.commit(payload(round))
            #expect(frame.segment == UInt64(round))
        }
        var journal = try folder.opened(appliedSegment: 3)
        let report = try journal.replay { _, _, _ in }
        #expect(report.segments == [4, 5])
        #expect(report.damage == [])
        journal.free(through: 5)
        #expect(journal.segmentNumbers == [])
        let frame = try journal.commit(payload(6))
        #expect(frame.segment == 6)
    }

    @Test("locations can be read, also by another thread during writes")
    func locations() async throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        let first = try journal.commit(payload(1))
        let readers = (journal.reader(of: 1), journal.reader(of: 2))
        let reader = try #require(readers.0)
        #expect(readers.1 == nil)
        let location = SegmentChanges.Location(
            segment: 1, offset: first.payloadOffset + 10, count: 50)
        let read = Task.detached { try reader.bytes(of: location) }
        for number in 2...100 { try journal.commit(payload(number)) }
        #expect(try await read.value == [UInt8](payload(1)[10..<60]))

        let beyond = SegmentChanges.Location(
            segment: 1, offset: UInt32(JournalFolder.segmentBytes) - 4, count: 8)
        let failure = #expect(throws: StoreFailure.self) { try reader.bytes(of: beyond) }
        #expect(failure?.kind == .damaged)
    }

    @Test("a frame larger than a segment gets its own file, which is deleted when freed")
    func oversized() throws {
        let folder = try JournalFolder()
        let large = payload(1, count: 3_000_000)
        do {
            var journal = try folder.journal()
            try journal.commit(payload(0))
            var isFull = journal.isFull(for: large.count)
            #expect(isFull)
            let frame = try journal.commit(large)
            #expect(frame.segment == 2)
            isFull = journal.isFull(for: 4_096)
            #expect(isFull)
            try journal.commit(payload(2))
        }
        let (frames, report) = try folder.replay()
        #expect(frames.map(\.bytes) == [payload(0), large, payload(2)])
        #expect(report.damage == [])

        var journal = try folder.journal()
        let before = journal.diskBytes
        #expect(before > 3_000_000)
        journal.free(through: 3)
        #expect(journal.diskBytes == 2 * JournalFolder.segmentBytes)
        #expect(try folder.names() == ["journal-1.segment", "journal-3.segment"])
    }

    @Test("fits exactly up to the end of a segment")
    func exactFit() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.beginSegment()
        let room = JournalFolder.segmentBytes - 4_096 - 24
        let before = (journal.isFull(for: room), journal.isFull(for: room + 1))
        #expect(before == (false, true))
        let first = try journal.commit(payload(1, count: room))
        let isFull = journal.isFull(for: 1)
        #expect(isFull)
        let second = try journal.commit(payload(2, count: room))
        let third = try journal.commit(payload(3, count: room + 1))
        #expect([first, second, third].map(\.segment) == [1, 2, 3])
        #expect(try folder.replay().frames.map(\.bytes.count) == [room, room, room + 1])
    }

    @Test("spare files are made elsewhere, one at a time and no more than the options say")
    func spares() async throws {
        let folder = try JournalFolder()
        var journal = try folder.journal(segmentCount: 2)
        try journal.beginSegment()
        let requests = (journal.spareRequest(), journal.spareRequest())
        let request = try #require(requests.0)
        #expect(requests.1 == nil)
        let file = try await Task.detached { try request.make() }.value
        journal.finishSpare(file)
        #expect(journal.hasFreeSegment == true)
        var another = journal.spareRequest()
        #expect(another == nil)
        try journal.beginSegment()
        #expect(journal.hasFreeSegment == false)
        another = journal.spareRequest()
        #expect(another == nil)
        #expect(try folder.names() == ["journal-1.segment", "journal-2.segment"])
        journal.free(through: 1)
        #expect(journal.hasFreeSegment == true)
    }

    @Test("a spare that could not be made is asked for again")
    func failedSpare() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        let first = journal.spareRequest()
        #expect(first != nil)
        journal.finishSpare(nil)
        let second = journal.spareRequest()
        #expect(second != nil)
    }

    @Test("files and directory belong to the owner alone, and unfinished files are removed")
    func filesOnDisk() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        var status = stat()
        try #require(stat(folder.path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o700)
        try #require(stat(folder.path + "/journal-1.segment", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(Int(status.st_size) == JournalFolder.segmentBytes)
        // Zeros were written, so the file has its blocks.
        #expect(Int(status.st_blocks) * 512 >= JournalFolder.segmentBytes)

        let unfinished = open(folder.path + "/journal-2.segment.new", O_CREAT | O_WRONLY, 0o600)
        try #require(unfinished >= 0)
        close(unfinished)
        _ = try folder.journal()
        #expect(try folder.names() == ["journal-1.segment"])
    }

    @Test("a symbolic link and a directory are refused in the place of a file")
    func strangeFiles() throws {
        let folder = try JournalFolder()
        do { _ = try folder.journal() }
        let path = folder.path + "/journal-1.segment"
        try #require(symlink("/etc/passwd", path) == 0)
        let link = #expect(throws: StoreFailure.self) { _ = try folder.opened() }
        #expect(link?.kind == .permissions)
        #expect(link?.code == ELOOP)
        unlink(path)
        try #require(mkfifo(path, 0o600) == 0)
        let fifo = #expect(throws: StoreFailure.self) { _ = try folder.opened() }
        #expect(fifo?.reason == "it is no regular file")
    }

    @Test("segments of another size are used up and then replaced")
    func changedSize() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        var journal = try folder.opened(segmentBytes: 131_072)
        _ = try journal.replay { _, _, _ in }
        try journal.commit(payload(2))
        journal.free(through: 1)
        #expect(try folder.names() == ["journal-2.segment"])
        #expect(journal.diskBytes == 131_072)
    }
}
