import CCheckedPages
import CSQLite
import Glibc
import HermesTesting
import Testing

@testable import Store

/// Databases with damaged pages, of which the rest is saved.
@Suite("DatabaseRepair")
struct DatabaseRepairTests {
    /// A data directory of one damaged database.
    private final class Damaged {
        let folder = DatabaseFolder()

        /// A copy of a database in which more bits of these pages have flipped than can be corrected.
        init(_ bytes: [UInt8], pages: [Int]) {
            var bytes = bytes
            for page in pages {
                let start = (page - 1) * Int(hermes_page_bytes) + 1_000
                for index in start..<start + 64 { bytes[index] ^= 0xFF }
            }
            DatabaseFolder.write(bytes, to: folder.file)
        }

        deinit {
            _ = unlink("\(folder.path)/damaged-1/hermes.sqlite")
            _ = rmdir("\(folder.path)/damaged-1")
        }

        func model() throws -> StoreModel {
            let database = try Database(directory: folder.path)
            return try #require(try StoreModel(reading: database, folder: folder))
        }
    }

    /// The file of a database whose tables have pages above their leaves, and what it holds.
    private static func stored() throws -> (bytes: [UInt8], model: StoreModel) {
        let folder = DatabaseFolder()
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        for session in UInt64(1)...200 {
            segment.session(session, "client-\(session)" + String(repeating: "x", count: 300))
            segment.subscription(session, "a/\(session)/#", qos: 1)
            segment.inbound(session, 7)
        }
        var number: UInt64 = 0
        func message(_ size: Int) -> UInt64 {
            number += 1
            segment.message(
                number, topic: Array("topic/\(number)".utf8),
                payload: (0..<size).map { UInt8(truncatingIfNeeded: $0 &+ Int(number)) })
            return number
        }
        for session in [UInt64(1), 100, 200] {
            segment.state(session, end: 201)
            for position in UInt64(1)...200 {
                segment.queued(
                    session, position, message: message(position == 30 ? 50_000 : 250))
            }
        }
        for place in UInt64(1)...100 {
            let shared = message(400)
            segment.queued(1, 200 + place, message: shared)
            segment.queued(100, 200 + place, message: shared)
        }
        for session in [UInt64(1), 100] { segment.state(session, end: 301) }
        for _ in 0..<60 { segment.retained("topic/\(number + 1)", message: message(300)) }
        segment.will(100, message: message(10))
        try segment.apply(to: database)
        try database.checkpoint(cuts: true)
        let model = try #require(try StoreModel(reading: database, folder: folder))
        return (DatabaseFolder.read(folder.file), model)
    }

    /// Checks that a repaired database has nothing but what the former one had; returns the number of
    /// queued messages.
    private static func compare(_ model: StoreModel, with former: StoreModel) -> Int {
        for (number, session) in model.sessions {
            var expected = former.sessions[number]
            expected?.queue = session.queue
            if session.subscriptions.isEmpty { expected?.subscriptions = [:] }
            if session.inbound.isEmpty { expected?.inbound = [] }
            if session.will == nil { expected?.will = nil }
            #expect(session == expected, "session \(number)")
            for (position, row) in session.queue {
                #expect(row == former.sessions[number]?.queue[position], "\(number), \(position)")
            }
        }
        for (topic, message) in model.retained { #expect(message == former.retained[topic]) }
        return model.sessions.values.reduce(0) { $0 + $1.queue.count }
    }

    @Test("whichever page is damaged, the rows of all others are saved, and fit each other")
    func everyPage() throws {
        let (bytes, former) = try Self.stored()
        let pages = bytes.count / Int(hermes_page_bytes)
        #expect(pages > 40)
        let queued = former.sessions.values.reduce(0) { $0 + $1.queue.count }
        var unsaved: [Int] = []
        for page in 1...pages {
            let damaged = Damaged(bytes, pages: [page])
            let report: DatabaseRepair.Report
            do throws(StoreFailure) {
                report = try DatabaseRepair.run(in: damaged.folder.path)
            } catch {
                #expect(error.kind == .damaged && error.cure == "Start on a backup.", "\(error)")
                unsaved.append(page)
                continue
            }
            #expect(report.folder == "\(damaged.folder.path)/damaged-1")
            #expect(report.losses.contains { $0.contains("page \(page) ") }, "\(report.losses)")
            let findings = try DatabaseCheck(directory: damaged.folder.path).run()
            #expect(findings == [], "page \(page)")
            let saved = Self.compare(try damaged.model(), with: former)
            // Sessions take their messages with them; a page has up to 150 rows of a queue.
            let isOfSessions = report.losses.contains { $0.contains("the table sessions") }
            #expect(saved > (isOfSessions ? 150 : queued - 180), "page \(page): \(saved)")
            #expect(
                try StoredDamage(in: damaged.folder.path).records.count == report.losses.count)
            _ = unlink("\(damaged.folder.path)/damage.txt")
        }
        // The first page, the list of tables, and the table meta.
        #expect(unsaved.first == 1 && unsaved.count <= 3, "\(unsaved)")
    }

    @Test("of many damaged pages each costs its own rows")
    func several() throws {
        let (bytes, former) = try Self.stored()
        let pages = bytes.count / Int(hermes_page_bytes)
        var random = SplitMix64(seed: 11)
        for _ in 0..<6 {
            let hit = (0..<6).map { _ in Int.random(in: 20...pages, using: &random) }
            let damaged = Damaged(bytes, pages: Array(Set(hit)))
            let report = try DatabaseRepair.run(in: damaged.folder.path)
            #expect(report.folder != nil)
            #expect(try DatabaseCheck(directory: damaged.folder.path).run() == [], "\(hit)")
            #expect(Self.compare(try damaged.model(), with: former) > 0)
        }
    }

    @Test("pages that the end of the file has lost cost their own rows", arguments: [1, 7, 20])
    func truncated(lost: Int) throws {
        let (bytes, former) = try Self.stored()
        let pages = bytes.count / Int(hermes_page_bytes)
        let damaged = Damaged(Array(bytes.dropLast(lost * Int(hermes_page_bytes))), pages: [])
        let report = try DatabaseRepair.run(in: damaged.folder.path)
        #expect(report.folder != nil)
        #expect(report.losses.contains { $0.contains("\(pages - lost + 1)") }, "\(report.losses)")
        #expect(try DatabaseCheck(directory: damaged.folder.path).run() == [])
        #expect(Self.compare(try damaged.model(), with: former) > 0)
        _ = unlink("\(damaged.folder.path)/damage.txt")
    }

    @Test(
        "a file whose first page tells of no checksums stays as it is, with its log",
        arguments: [true, false])
    func unsealed(hasMagic: Bool) throws {
        let (bytes, _) = try Self.stored()
        let damaged = Damaged(bytes, pages: [])
        let database = try Database(directory: damaged.folder.path)
        var segment = SegmentBuilder(2)
        segment.session(999, "late")
        try segment.apply(to: database)
        let crashed = damaged.folder.copyAfterCrash()
        var file = DatabaseFolder.read(crashed.file)
        if hasMagic {
            let end = Int(hermes_page_bytes)
            for index in end - Int(hermes_page_reserved)..<end { file[index] = 0 }
        } else {
            for index in 0..<64 { file[index] ^= 0xFF }
        }
        DatabaseFolder.write(file, to: crashed.file)
        let log = DatabaseFolder.read(crashed.file + "-wal")
        #expect(!log.isEmpty)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try DatabaseRepair.run(in: crashed.path)
        }
        #expect(failure?.kind == (hasMagic ? .other : .damaged))
        let cure = hasMagic ? "Start the broker once" : "Copy the file and its log"
        #expect(failure?.cure?.hasPrefix(cure) == true, "\(String(describing: failure))")
        #expect(DatabaseFolder.read(crashed.file) == file)
        try #require(crashed.names.contains("hermes.sqlite-wal"))
        #expect(DatabaseFolder.read(crashed.file + "-wal") == log)
    }

    @Test("a sound database stays as it is")
    func sound() throws {
        let (bytes, former) = try Self.stored()
        let sound = Damaged(bytes, pages: [])
        let report = try DatabaseRepair.run(in: sound.folder.path)
        #expect(report == DatabaseRepair.Report())
        #expect(DatabaseFolder.read(sound.folder.file) == bytes)
        #expect(try sound.model() == former)
    }

    @Test("what the write-ahead log has is saved, too")
    func log() throws {
        let (bytes, _) = try Self.stored()
        let damaged = Damaged(bytes, pages: [])
        let database = try Database(directory: damaged.folder.path)
        var segment = SegmentBuilder(2)
        segment.session(999, "late")
        try segment.apply(to: database)
        let crashed = damaged.folder.copyAfterCrash()
        var file = DatabaseFolder.read(crashed.file)
        // A page of a queue.
        let place = 40 * Int(hermes_page_bytes) + 1_000
        for index in place..<place + 64 { file[index] ^= 0xFF }
        DatabaseFolder.write(file, to: crashed.file)
        #expect(crashed.names.contains("hermes.sqlite-wal"))
        let report = try DatabaseRepair.run(in: crashed.path)
        #expect(report.folder != nil)
        let repaired = try Database(directory: crashed.path)
        let model = try #require(try StoreModel(reading: repaired, folder: crashed))
        #expect(model.sessions[999]?.clientID == Array("late".utf8))
        #expect(repaired.progress.appliedSegment == 2)
        _ = unlink("\(crashed.path)/damaged-1/hermes.sqlite")
        _ = rmdir("\(crashed.path)/damaged-1")
    }

    @Test("each connection names the page that it has found damaged itself")
    func twoFiles() throws {
        let (bytes, _) = try Self.stored()
        let pages = bytes.count / Int(hermes_page_bytes)
        let (one, other) = (Damaged(bytes, pages: [pages - 5]), Damaged(bytes, pages: [pages - 9]))
        let first = try Database(directory: one.folder.path)
        let second = try Database(directory: other.folder.path)
        for database in [first, second] {
            #expect(throws: StoreFailure.self) {
                for table in ["queue", "messages", "retained", "subscriptions", "sessions"] {
                    let row = try database.connection.prepare("SELECT * FROM \(table)", "read")
                    while try row.next() {}
                }
            }
        }
        #expect(first.connection.failure("read").reason.contains("page \(pages - 5) "))
        #expect(second.connection.failure("read").reason.contains("page \(pages - 9) "))
    }

    @Test("a file with pages of another size is refused with what gives it the right ones")
    func pageSize() throws {
        let (bytes, former) = try Self.stored()
        let damaged = Damaged(bytes, pages: [])
        let folder = DatabaseFolder()
        // As a program makes it that knows nothing of checksums.
        var other: OpaquePointer?
        #expect(sqlite3_open(damaged.folder.file, &other) == SQLITE_OK)
        var reserved: Int32 = 0
        sqlite3_file_control(other, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved)
        let copy = "PRAGMA page_size = 4096; VACUUM INTO '\(folder.file)'"
        #expect(sqlite3_exec(other, copy, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(other)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path)
        }
        #expect(failure?.kind == .other && failure?.reason.contains("4096 bytes") == true)
        let cure = try #require(failure?.cure?.split(separator: "'").dropFirst().first)
        var handle: OpaquePointer?
        #expect(sqlite3_open(folder.file, &handle) == SQLITE_OK)
        #expect(sqlite3_exec(handle, String(cure), nil, nil, nil) == SQLITE_OK)
        sqlite3_close(handle)
        let database = try Database(directory: folder.path)
        let isSealed = database.connection.isSealed
        #expect(isSealed)
        #expect(try StoreModel(reading: database, folder: folder) == former)
    }
}
