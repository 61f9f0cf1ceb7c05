import CSQLite
import Glibc
import HermesTesting
import Testing

@testable import Store

@Suite("Database: faults")
struct DatabaseFaultTests {
    private let folder = DatabaseFolder()

    /// A segment with `count` messages of 1,000 bytes for session 1.
    private func segment(_ number: UInt64, first: UInt64, count: UInt64) -> SegmentBuilder {
        var segment = SegmentBuilder(number)
        if number == 1 { segment.session(1, "one") }
        segment.state(1, end: first + count)
        for position in first..<first + count {
            segment.message(
                position, topic: Array("t".utf8), payload: [UInt8](repeating: 7, count: 1_000))
            segment.queued(1, position, message: position)
        }
        return segment
    }

    @Test("a full disk takes nothing of a segment in, and all of it once there is room")
    func full() throws {
        let database = try Database(directory: folder.path)
        try segment(1, first: 1, count: 10).apply(to: database)
        let before = try StoreModel(reading: database, folder: folder)
        let pages = try database.connection.number("PRAGMA page_count", "read")
        _ = try database.connection.number("PRAGMA max_page_count = \(pages + 3)", "test")

        let large = segment(2, first: 11, count: 500)
        let failure = #expect(throws: StoreFailure.self) { try large.apply(to: database) }
        #expect(failure?.kind == .outOfSpace)
        #expect(failure?.description.contains("hermes.sqlite") == true)
        #expect(failure?.cure != nil)
        #expect(database.progress.appliedSegment == 1)
        #expect(try StoreModel(reading: database, folder: folder) == before)

        _ = try database.connection.number("PRAGMA max_page_count = 1000000", "test")
        #expect(try large.apply(to: database))
        #expect(try StoreModel(reading: database, folder: folder)?.sessions[1]?.queue.count == 510)
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test("a journal that cannot be read takes nothing of the segment in")
    func unreadableContent() throws {
        let database = try Database(directory: folder.path)
        let segment = segment(1, first: 1, count: 10)
        let broken = StoreFailure(operation: "read", path: "/journal", errno: EIO)
        var calls = 0
        do throws(StoreFailure) {
            let content = [UInt8](repeating: 7, count: 2_000)
            _ = try content.withUnsafeBytes { content in
                Result { () throws(StoreFailure) in
                    try database.apply(segment.changes) { location throws(StoreFailure) in
                        calls += 1
                        if calls == 5 { throw broken }
                        return UnsafeRawBufferPointer(rebasing: content[..<Int(location.count)])
                    }
                }
            }.get()
            Issue.record("the failure was lost")
        } catch {
            #expect(error == broken)
        }
        #expect(calls == 5)
        #expect(database.progress.appliedSegment == 0)
        let sessions = try database.connection.number("SELECT count(*) FROM sessions", "read")
        #expect(sessions == 0)
        #expect(try segment.apply(to: database))
    }

    @Test("a transaction that a crash cut off is not there")
    func tornTransaction() throws {
        let database = try Database(directory: folder.path)
        try segment(1, first: 1, count: 10).apply(to: database)
        let wal = DatabaseFolder.read("\(folder.file)-wal")
        try segment(2, first: 11, count: 200).apply(to: database)
        let after = DatabaseFolder.read("\(folder.file)-wal")
        for length in stride(from: wal.count, to: after.count, by: (after.count - wal.count) / 7) {
            let copy = folder.copyAfterCrash()
            DatabaseFolder.write(Array(after[..<length]), to: "\(copy.file)-wal")
            let reopened = try Database(directory: copy.path)
            #expect(reopened.progress.appliedSegment == 1, "cut at \(length)")
            let found = try StoreModel(reading: reopened, folder: copy)
            #expect(found?.sessions[1]?.queue.count == 10)
        }
        let whole = folder.copyAfterCrash()
        let reopened = try Database(directory: whole.path)
        #expect(reopened.progress.appliedSegment == 2)
    }

    @Test("a file with damaged pages is named in the error, and in the check's findings")
    func damagedPages() throws {
        do {
            let database = try Database(directory: folder.path)
            try segment(1, first: 1, count: 2_000).apply(to: database)
            try database.checkpoint()
        }
        var bytes = DatabaseFolder.read(folder.file)
        let page = DatabaseFormat.pageBytes
        for start in stride(from: 3 * page, to: bytes.count, by: page) {
            for index in start..<start + 16 { bytes[index] ^= 0xFF }
        }
        DatabaseFolder.write(bytes, to: folder.file)
        let failure = #expect(throws: StoreFailure.self) {
            let database = try Database(directory: folder.path)
            try segment(2, first: 2_001, count: 1).apply(to: database)
            _ = try StoreModel(reading: database, folder: folder)
        }
        #expect(failure?.kind == .damaged)
        #expect(failure?.description.contains("hermes.sqlite") == true)
        let findings = try? DatabaseCheck(directory: folder.path).run()
        #expect(findings?.isEmpty != true)
    }

    @Test("a damaged header is an error that names the file")
    func damagedHeader() throws {
        do { _ = try Database(directory: folder.path) }
        var bytes = DatabaseFolder.read(folder.file)
        for index in 0..<16 { bytes[index] ^= 0x55 }
        DatabaseFolder.write(bytes, to: folder.file)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path)
        }
        #expect(failure?.kind == .damaged)
        #expect(failure?.description.contains("\(folder.file)") == true)
        #expect(failure?.cure != nil)
        #expect(DatabaseFolder.read(folder.file) == bytes, "the file stays as it is")
    }

    @Test(
        "SQLite's codes become kinds",
        arguments: [
            (SQLITE_FULL, Int32(0), StoreFailure.Kind.outOfSpace),
            (SQLITE_IOERR | (3 << 8), EIO, .inputOutput),
            (SQLITE_IOERR | (3 << 8), EDQUOT, .outOfSpace),
            (SQLITE_IOERR | (4 << 8), EIO, .inputOutput),
            (SQLITE_CORRUPT, 0, .damaged),
            (SQLITE_NOTADB, 0, .damaged),
            (SQLITE_CONSTRAINT | (6 << 8), 0, .damaged),
            (SQLITE_READONLY | (4 << 8), 0, .permissions),
            (SQLITE_CANTOPEN, EACCES, .permissions),
            (SQLITE_CANTOPEN, EMFILE, .other),
            (SQLITE_PERM, 0, .permissions),
            (SQLITE_BUSY, 0, .locked),
            (SQLITE_NOMEM, 0, .other),
        ])
    func kinds(code: Int32, systemError: Int32, kind: StoreFailure.Kind) {
        let failure = StoreFailure(
            operation: "write", path: "/data/hermes.sqlite", sqliteCode: code, reason: "no",
            systemError: systemError)
        #expect(failure.kind == kind)
        #expect(failure.code == code)
    }
}
