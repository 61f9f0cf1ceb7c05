import Testing

@testable import Store

@Suite("The bytes of a journal segment")
struct SegmentFormatTests {
    private static let header = SegmentHeader(
        number: 0x0102_0304_0506_0708, salt: 0x1112_1314_1516_1718, previousNumber: 7,
        previousEnd: 0x5000)

    private static func reading(_ block: [UInt8]) -> SegmentHeader.Reading {
        block.withUnsafeBytes { SegmentHeader.read($0) }
    }

    /// The header with a higher version and a valid checksum.
    private static func newerBlock() -> [UInt8] {
        var block = header.block()
        block[8] = 6
        let checksum = block[..<60].withUnsafeBytes { crc32c(0, $0) }
        withUnsafeBytes(of: checksum.littleEndian) { block.replaceSubrange(60..<64, with: $0) }
        return block
    }

    @Test("a header has each field at its place, twice")
    func headerBytes() {
        let block = Self.header.block()
        let expected: [UInt8] =
            [UInt8]("HermesJL".utf8) + [5, 0, 0, 0, 0, 0, 0, 0]
            + [8, 7, 6, 5, 4, 3, 2, 1] + [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]
            + [7, 0, 0, 0, 0, 0, 0, 0] + [0, 0x50, 0, 0, 0, 0, 0, 0]
            + [UInt8](repeating: 0, count: 12)
        #expect(block.count == 4_096)
        #expect([UInt8](block[..<60]) == expected)
        #expect(block[..<64] == block[2_048..<2_112].map { $0 }[...])
        #expect(Self.reading(block) == .header(Self.header))
    }

    @Test("one intact copy of the header is enough; a flipped bit in both is not")
    func headerCopies() {
        for bit in 0..<64 * 8 {
            var block = Self.header.block()
            block[bit / 8] ^= 1 << (bit % 8)
            #expect(Self.reading(block) == .header(Self.header))
            block[2_048 + bit / 8] ^= 1 << (bit % 8)
            #expect(Self.reading(block) == .unreadable)
        }
    }

    @Test("zeros are a file that was never used, and a short block is unreadable")
    func blankAndShort() {
        #expect(Self.reading([UInt8](repeating: 0, count: 4_096)) == .blank)
        #expect(Self.reading([UInt8](repeating: 0, count: 4_095)) == .unreadable)
        #expect(Self.reading([]) == .unreadable)
        #expect(Self.reading([UInt8](Self.header.block()[..<64])) == .header(Self.header))
        #expect(Self.reading([UInt8](Self.header.block()[..<63])) == .unreadable)
    }

    @Test("an intact header of a newer format is told from damage")
    func newer() {
        var block = Self.newerBlock()
        #expect(Self.reading(block) == .newer(6))
        block[20] ^= 1
        // The copy still has this version.
        #expect(Self.reading(block) == .header(Self.header))
    }

    @Test("versions that lack the newest kinds of records are read as ever", arguments: 1...4)
    func olderVersion(version: Int) {
        var block = Self.header.block()
        for copy in [0, 2_048] {
            block[copy + 8] = UInt8(version)
            let checksum = block[copy..<copy + 60].withUnsafeBytes { crc32c(0, $0) }
            withUnsafeBytes(of: checksum.littleEndian) {
                block.replaceSubrange(copy + 60..<copy + 64, with: $0)
            }
        }
        #expect(Self.reading(block) == .header(Self.header))
    }

    @Test("a newer format is rejected with advice")
    func newerFile() throws {
        let folder = try JournalFolder()
        do {
            var journal = try folder.journal()
            try journal.commit(payload(1))
        }
        try folder.overwrite("journal-1.segment", with: Self.newerBlock())
        do {
            _ = try folder.opened()
            Issue.record("a journal of a newer format was opened")
        } catch let failure as StoreFailure {
            #expect(failure.kind == .newerFormat)
            #expect(
                "\(failure)" == """
                    cannot read "\(folder.path)/journal-1.segment": it has format 6, and this \
                    program knows up to 5. Start the newer version of this program that wrote it, \
                    or use another data directory.
                    """)
        }
    }

    @Test("a frame has each field at its place, and its block is filled up with zeros")
    func frameBytes() throws {
        let folder = try JournalFolder()
        var journal = try folder.journal()
        try journal.beginSegment()
        try journal.commit([1, 2, 3])
        try journal.write([4])
        try journal.write([5])
        let file = try folder.contents(of: "journal-1.segment")
        let salt = file[24..<32]
        // Offset, payload, end of the former frame, synced end.
        let expected: [(Int, [UInt8], Int, Int)] = [
            (4_096, [1, 2, 3], 4_096, 4_096), (8_192, [4], 4_128, 4_128),
            (8_224, [5], 8_224, 4_128),
        ]
        for (offset, payload, previousEnd, syncedEnd) in expected {
            let frame = file[offset..<offset + 24 + payload.count]
            var header = [UInt8](salt)
            for number in [payload.count, previousEnd, syncedEnd] {
                withUnsafeBytes(of: UInt32(number).littleEndian) { header += $0 }
            }
            #expect([UInt8](frame.prefix(20)) == header)
            #expect([UInt8](frame.suffix(payload.count)) == payload)
            var covered: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0]
            withUnsafeBytes(of: UInt64(offset).littleEndian) { covered += $0 }
            covered += header + payload
            let checksum = covered.withUnsafeBytes { crc32c(0, $0) }
            #expect(
                [UInt8](frame.dropFirst(20).prefix(4))
                    == withUnsafeBytes(of: checksum.littleEndian) { [UInt8]($0) })
        }
        #expect(file[4_123..<8_192].allSatisfy { $0 == 0 })
    }
}
