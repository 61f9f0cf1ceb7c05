import Glibc
import HermesTesting
import Testing

@testable import Store

@Suite("Database: upkeep")
struct DatabaseUpkeepTests {
    private let folder = DatabaseFolder()
    private let database: Database

    init() throws { database = try Database(directory: folder.path) }

    private func fill(_ number: UInt64, messages: UInt64, payload: Int = 4_000) throws {
        var segment = SegmentBuilder(number)
        segment.session(number, "client-\(number)")
        segment.state(number, end: messages + 1)
        for position in 1...messages {
            segment.message(
                number * 1_000_000 + position, topic: Array("t".utf8),
                payload: [UInt8](repeating: 1, count: payload))
            segment.queued(number, position, message: number * 1_000_000 + position)
        }
        try segment.apply(to: database)
    }

    private func drain(_ number: UInt64, session: UInt64) throws {
        var segment = SegmentBuilder(number)
        segment.finished(session, 1...1_000_000)
        try segment.apply(to: database)
    }

    @Test("a checkpoint brings the log into the file, and its room is used again")
    func checkpoint() throws {
        try fill(1, messages: 1_000)
        let log = try database.sizes().writeAheadLog
        #expect(log > 4_000_000)
        #expect(try database.checkpoint().isComplete)
        try fill(2, messages: 900)
        #expect(try database.sizes().writeAheadLog == log)
        #expect(try database.sizes().file > 7_000_000)
    }

    @Test("a reader amid its rows delays a checkpoint and does not fail it")
    func checkpointBesideReader() throws {
        try fill(1, messages: 10)
        let reader = try SQLiteConnection.open(database.path, .readOnly, cacheBytes: 100_000)
        let rows = try reader.prepare("SELECT position FROM queue", "read")
        #expect(try rows.next())
        try fill(2, messages: 10)
        #expect(try !database.checkpoint().isComplete)
        rows.reset()
        #expect(try database.checkpoint().isComplete)
    }

    @Test("large retained messages are removed in slices, each with a little room in the log")
    func retainedRemovals() throws {
        let topics = (0..<24).map { "t/\($0)" }
        var segment = SegmentBuilder(1)
        for (number, topic) in topics.enumerated() {
            segment.message(
                UInt64(number + 1), topic: Array(topic.utf8),
                payload: [UInt8](repeating: 7, count: 400_000), retain: true)
            segment.retained(topic, message: UInt64(number + 1))
        }
        try segment.apply(to: database)
        try database.checkpoint(cuts: true)
        var removal = SegmentBuilder(2)
        for topic in topics.dropFirst() + ["unknown"] { removal.retained(topic, message: nil) }
        let slices = try RemovalSlices(of: [removal.changes], in: database)
        var count = 0
        while try slices.run() {
            count += 1
            #expect(try database.sizes().writeAheadLog < 4_000_000)
            try database.checkpoint(cuts: true)
        }
        #expect((4...8).contains(count), "\(count) slices")
        #expect(try database.connection.number("SELECT count(*) FROM messages", "read") == 1)
        try removal.apply(to: database)
        #expect(try database.connection.number("SELECT count(*) FROM retained", "read") == 1)
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test("a large log is cut once it is in the file")
    func largeLog() throws {
        try fill(1, messages: 9_000)
        #expect(try database.sizes().writeAheadLog > Database.largestIdleLog)
        #expect(try database.checkpoint().isComplete)
        #expect(try database.sizes().writeAheadLog == 0)
    }

    @Test("space is freed in slices after a drain, except space needed again soon")
    func reclaim() throws {
        try fill(1, messages: 5_000)
        try fill(2, messages: 100)
        try database.checkpoint()
        let full = try database.sizes()
        #expect(full.file > 20_000_000)
        #expect(try !database.reclaim(), "nothing is free")

        try drain(3, session: 1)
        #expect(try database.reclaim(mostPages: 100))
        let slice = try database.sizes()
        #expect(full.file - slice.file == 100 * DatabaseFormat.pageBytes)
        var slices = 0
        while try database.reclaim(mostPages: 500) {
            slices += 1
            #expect(slices < 100)
        }
        let drained = try database.sizes()
        #expect(drained.file < 7_000_000)
        #expect(drained.free >= Database.spareFreePages * DatabaseFormat.pageBytes)
        var status = stat()
        #expect(stat(folder.file, &status) == 0)
        #expect(Int(status.st_size) == drained.file, "the file itself has shrunk")
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test("a backup holds the state at its last step, including writes during it")
    func backup() throws {
        try fill(1, messages: 500)
        let copy = DatabaseFolder()
        let backup = try DatabaseBackup(of: database, to: copy.path)
        #expect(try !backup.step(pages: 5).isDone)
        try fill(2, messages: 3)
        try drain(3, session: 1)
        var steps = 0
        while try !backup.step(pages: 50).isDone {
            steps += 1
            #expect(steps < 1_000)
        }
        #expect(DatabaseFolder.mode(copy.file) == 0o600)
        #expect(copy.names == ["hermes.sqlite"])
        var expected = try StoreModel(reading: database, folder: folder)
        // The copy has no journal, so it expects none of its segments.
        expected?.progress.appliedSegment = 0
        let copied = try Database(directory: copy.path)
        #expect(try StoreModel(reading: copied, folder: copy) == expected)
        #expect(expected?.sessions[2]?.queue.count == 3)
        #expect(try DatabaseCheck(directory: copy.path).run() == [])
    }

    @Test("a backup that is given up leaves no file, and one never overwrites another")
    func backupGivenUp() throws {
        try fill(1, messages: 500)
        let copy = DatabaseFolder()
        do {
            let backup = try DatabaseBackup(of: database, to: copy.path)
            _ = try backup.step(pages: 1)
        }
        #expect(copy.names == [])
        DatabaseFolder.write([1], to: copy.file)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try DatabaseBackup(of: database, to: copy.path)
        }
        #expect(failure?.description.contains("the file exists") == true)
        #expect(DatabaseFolder.read(copy.file) == [1])
    }

    @Test("a backup to an impossible folder is an error with advice")
    func backupNowhere() throws {
        let failure = #expect(throws: StoreFailure.self) {
            _ = try BackupFolder.prepare("/nonexistent/copy", of: folder.file, bytes: 0)
        }
        #expect(failure?.cure == "Make the folder above it first, or name another.")
    }
}
