import HermesTesting
import Testing

@testable import Store

/// A data directory of version 4, whose rows and records of features become facts.
@Suite("A store of version 4")
struct FormerStoreTests {
    private let folder = DurableFolder()

    @Test("rows and records become facts, with the owners of what they belong to")
    func upgraded() throws {
        try makeDatabase()
        try makeJournal()
        for start in 1...2 {
            let store = try SteppedStore(at: folder.path)
            #expect(store.restored.model.facts == expected, "start \(start)")
            #expect(store.restored.model.sessions.keys.sorted() == [1, 2])
            if start == 2 { #expect(store.store.recovery.report.frameCount == 0) }
            store.settle()
            #expect(store.close())
        }
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
        let database = try Database(directory: folder.path)
        let tables = try database.connection.number(
            "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%receipt%'", "read")
        #expect(tables == 0)
    }

    /// Each feature has something that the journal changes and something that it leaves.
    private func makeDatabase() throws {
        let path = try DatabaseFile.path(in: folder.path)
        try DatabaseFile.prepare(path)
        let connection = try SQLiteConnection.open(path, .readWrite, cacheBytes: 1_000_000)
        try DatabaseFormat(
            version: 4,
            schema: schemaVersion1 + upgradeToVersion2 + DatabaseFormat.version3
                + upgradeToVersion4, upgrades: [:]
        ).install(in: connection)
        let wide = "x'\(String(repeating: "01", count: 16))'"
        try connection.execute(
            """
            INSERT INTO sessions VALUES (1, x'63', NULL, 0, 5, 0, 3, 0, 0, 0, 0);
            INSERT INTO sequences VALUES (x'61', 7), (x'62', 8);
            INSERT INTO publish_keys VALUES
                (4, \(wide), \(wide), \(wide), 1, 2, 3, 4), (6, \(wide), \(wide), \(wide), 5, 6, 7, 8);
            UPDATE receipt_progress SET first = 1, last_event = 2, taken = 0;
            INSERT INTO receipts VALUES (1, 5, x'6D31', x'74'), (2, 6, x'6D32', x'74');
            INSERT INTO receipt_receivers VALUES (1, 0, 1, 0, x'63', 1, 2, 3, 4),
                (2, 0, 1, 1, x'63', 0, 0, 0, 0);
            INSERT INTO scheduled VALUES (1, 10, 20, x'7331', x'74', x'70', 1, 1, 0),
                (2, 10, 20, x'7332', x'74', x'', 2, 0, 1);
            INSERT INTO collapsible VALUES (1, 0, \(wide), x'0500000000000000'),
                (1, 1, \(wide), x''), (9, 1, \(wide), x'');
            INSERT INTO tags VALUES (x'63', x'67'), (x'63', x'68');
            INSERT INTO pushes VALUES (1, 1, 2, 3, 4, x'7031', x'74', x'70', 1, 0, x'7A', 5,
                1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0);
            INSERT INTO devices VALUES (x'63', x'75', x'746F', x'', 1, 2, 3, 0, 1, 2),
                (x'64', NULL, x'746F', x'', 1, 2, 3, 1, 0, 0);
            UPDATE meta SET value = 1 WHERE name = 'last_session';
            """, "test")
    }

    private func makeJournal() throws {
        var records = FormerRecords()
        records.add(2, .number(2), .text("d"), .byte(0), .text(""))
        records.add(19, .number(9), .text("a"))
        records.add(23, .number(5))
        records.add(45, .number(3), .number(7), .text("m3"), .text("t"))
        records.add(46, .number(3), .count(0), .number(2), .number(0), .text("d"))
        records.add(47, .number(2), .count(0), .byte(1), .byte(0), .number(8), .number(3))
        records.add(47, .number(3), .count(0), .byte(4), .byte(1), .number(9), .number(4))
        records.add(48, .number(2), .number(4), .number(1))
        records.add(51, .number(1), .number(99))
        records.add(52, .number(2))
        records.add(43, .number(2), .number(0), .number(1), .number(0), .count(1), .number(6))
        records.add(44, .number(1), .number(1))
        records.add(55, .byte(0), .text("c"), .text("g"))
        records.add(55, .byte(1), .text("d"), .text("g"))
        records.add(57, .number(1), .byte(2), .number(7), .count(1), .count(2), .count(3))
        records.continued(.count(4), .count(5), .count(6), .count(7), .number(8), .number(9))
        records.add(62, .number(2), .number(5), .text("d"))
        records.add(61, .text("c"))
        records.add(1, .number(1))
        var journal = try Journal(
            directory: folder.journal,
            options: JournalOptions(segmentBytes: 65_536, segmentCount: 3), appliedSegment: 0)
        _ = try journal.replay { _, _, _ in }
        try journal.beginSegment()
        _ = try records.bytes.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
            try journal.append([UnsafeRawBufferPointer(bytes)])
        }
    }

    private var expected: [StoreModel.FactName: StoreModel.Fact] {
        var facts: [StoreModel.FactName: StoreModel.Fact] = [:]
        func add(_ table: UInt8, _ owner: String, _ key: [UInt8], _ value: [UInt8]) {
            facts[StoreModel.FactName(table, key)] = StoreModel.Fact(
                owner: FactOwner(Array(owner.utf8)), value: value)
        }
        func number(_ value: UInt8, _ bytes: Int = 8) -> [UInt8] {
            [UInt8](repeating: 0, count: bytes - 1) + [value]
        }
        let wide = [UInt8](repeating: 1, count: 16)
        add(1, "a", [0x61], number(9))
        add(1, "b", [0x62], number(8))
        add(
            2, String(decoding: wide, as: UTF8.self), number(6) + wide,
            wide + wide + (5...8).flatMap { number($0, 4) })
        add(3, "", [], number(2) + number(4) + number(1))
        add(4, "m2", number(2), number(6) + [2, 0x6D, 0x32, 0x74])
        add(4, "m2", number(2) + [0, 0, 0, 0, 0], [1, 0] + number(8) + number(3))
        add(4, "m2", number(2) + [0, 0, 0, 0, 1], number(1) + number(1) + [0x63])
        add(4, "m3", number(3), number(7) + [2, 0x6D, 0x33, 0x74])
        add(4, "m3", number(3) + [0, 0, 0, 0, 0], [4, 1] + number(9) + number(4))
        add(4, "m3", number(3) + [0, 0, 0, 0, 1], number(2) + number(0) + [0x64])
        add(5, "s1", number(1) + [0], number(99))
        add(
            5, "s1", number(1) + [1],
            number(10) + number(20) + [1, 1, 0, 2, 0x73, 0x31, 1, 0x74, 0x70])
        add(6, "c", number(1) + number(0), wide + number(5))
        add(6, "d", number(2) + number(0), number(1, 16) + number(6))
        add(7, "c", [1, 0x63, 0x68], [])
        add(7, "d", [1, 0x64, 0x67], [])
        add(
            8, "p1", number(1) + [1],
            [2] + number(7) + (1...7).flatMap { number($0, 4) } + number(8) + number(9))
        add(
            8, "p1", number(1) + [2],
            (1...5).flatMap { number($0) } + [1, 0, 2, 0x70, 0x31, 0x74])
        add(9, "d", [0x64], [0, 0, 2, 0x74, 0x6F, 0, 1, 2] + number(3) + [1])
        add(10, "d", [0x64], number(2) + number(5))
        return facts
    }
}

/// Writes records as versions up to 4 did.
private struct FormerRecords {
    enum Field {
        case byte(UInt8)
        case count(UInt32)
        case number(UInt64)
        case text(String)
    }

    private(set) var bytes: [UInt8] = []

    mutating func add(_ kind: UInt8, _ fields: Field...) {
        bytes.append(kind)
        append(fields)
    }

    /// Adds fields to the last record.
    mutating func continued(_ fields: Field...) { append(fields) }

    private mutating func append(_ fields: [Field]) {
        for field in fields {
            switch field {
            case .byte(let value): bytes.append(value)
            case .count(let value): put(value)
            case .number(let value): put(value)
            case .text(let text):
                put(UInt32(text.utf8.count))
                bytes += text.utf8
            }
        }
    }

    private mutating func put(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }
}
