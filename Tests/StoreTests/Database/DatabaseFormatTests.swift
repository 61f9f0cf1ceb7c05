import Glibc
import HermesTesting
import Testing

@testable import Store

@Suite("Database: file and format")
struct DatabaseFormatTests {
    private let folder = DatabaseFolder()

    @Test("a new file is Hermes's, version 6, in WAL mode, synchronised, and shrinks by slices")
    func created() throws {
        let database = try Database(directory: folder.path)
        func pragma(_ name: String) throws -> Int64 {
            try database.connection.number("PRAGMA \(name)", "read")
        }
        #expect(try pragma("application_id") == 0x4852_4D53)
        #expect(try pragma("user_version") == 6)
        #expect(try pragma("page_size") == 16_384)
        #expect(try pragma("auto_vacuum") == 2)
        #expect(try pragma("synchronous") == 2)
        #expect(try pragma("wal_autocheckpoint") == 0)
        #expect(try pragma("cache_size") == -16_384)
        let mode = try database.connection.prepare("PRAGMA journal_mode", "read")
        #expect(try mode.next())
        #expect(mode.text(0) == "wal")
    }

    @Test("all its files have mode 0600, also one that had another")
    func modes() throws {
        do {
            let database = try Database(directory: folder.path)
            var segment = SegmentBuilder(1)
            segment.session(1, "one")
            try segment.apply(to: database)
            let reader = try QueueReader(directory: folder.path)
            _ = reader
            #expect(folder.names == ["hermes.sqlite", "hermes.sqlite-shm", "hermes.sqlite-wal"])
            for name in folder.names {
                #expect(DatabaseFolder.mode("\(folder.path)/\(name)") == 0o600, "\(name)")
            }
        }
        chmod(folder.file, 0o644)
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(2)
        segment.session(2, "two")
        try segment.apply(to: database)
        for name in folder.names {
            #expect(DatabaseFolder.mode("\(folder.path)/\(name)") == 0o600, "\(name)")
        }
    }

    @Test("a symbolic link in place of the file is not followed; one on the way to the folder is")
    func symbolicLinks() throws {
        let other = DatabaseFolder()
        do { _ = try Database(directory: other.path) }
        chmod(other.file, 0o640)
        symlink(other.file, folder.file)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path)
        }
        #expect(failure?.kind == .permissions)
        #expect(throws: StoreFailure.self) { _ = try QueueReader(directory: folder.path) }
        #expect(DatabaseFolder.mode(other.file) == 0o640, "what it points to stays as it is")

        let link = "\(folder.path)/link"
        symlink(other.path, link)
        let database = try Database(directory: link)
        #expect(database.path == other.file)
    }

    @Test("a newer format is refused, and the file stays as it is")
    func newer() throws {
        do {
            let database = try Database(directory: folder.path)
            try database.connection.execute("PRAGMA user_version = 7", "test")
            try database.checkpoint()
        }
        let bytes = DatabaseFolder.read(folder.file)
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path)
        }
        #expect(failure?.kind == .newerFormat)
        #expect(
            failure?.description
                == "cannot open \"\(folder.file)\": its format is version 7, and this program knows "
                + "versions up to 6. Start the newer version of Hermes that wrote it, or start on a "
                + "backup.")
        #expect(DatabaseFolder.read(folder.file) == bytes)
    }

    @Test("an older format is upgraded step by step, in one transaction")
    func upgraded() throws {
        do {
            let database = try Database(directory: folder.path)
            var segment = SegmentBuilder(1)
            segment.session(1, "one")
            try segment.apply(to: database)
        }
        var format = DatabaseFormat.current
        format.version = 8
        format.upgrades = [
            6: "ALTER TABLE sessions ADD COLUMN note TEXT DEFAULT 'upgraded'",
            7: "CREATE TABLE samples (number INTEGER PRIMARY KEY) ; no such statement",
        ]
        #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path, format: format)
        }
        do {
            let database = try Database(directory: folder.path)
            let version = try database.connection.number("PRAGMA user_version", "read")
            #expect(version == 6, "the failed upgrade left nothing")
        }
        format.upgrades[7] = "CREATE TABLE samples (number INTEGER PRIMARY KEY)"
        let path = try DatabaseFile.path(in: folder.path)
        let connection = try SQLiteConnection.open(path, .readWrite, cacheBytes: 1_000_000)
        try format.install(in: connection)
        #expect(try connection.number("PRAGMA user_version", "read") == 8)
        #expect(
            try connection.number("SELECT count(*) FROM sessions WHERE note = 'upgraded'", "read")
                == 1)
        #expect(try connection.number("SELECT count(*) FROM facts", "read") == 0)
        try format.install(in: connection)
    }

    @Test("a file of version 1 keeps all it holds, and its queue knows of no shared subscription")
    func upgradedFromVersion1() throws {
        do {
            let connection = try SQLiteConnection.open(
                prepared(), .readWrite, cacheBytes: 1_000_000)
            try DatabaseFormat(version: 1, schema: schemaVersion1, upgrades: [:])
                .install(in: connection)
            try connection.execute(
                """
                INSERT INTO sessions VALUES (1, x'61', NULL, 0, 5, 1, 3, 2, 6);
                INSERT INTO subscriptions VALUES (1, x'24', 1);
                INSERT INTO queue VALUES (1, 1, 1, 3, 1, 0, 0, 0, 1, 0, 9, x'61', x'6262');
                INSERT INTO queue VALUES (1, 2, 2, 3, 1, 0, 0, 1, NULL, NULL, NULL, NULL, NULL);
                INSERT INTO messages VALUES (2, 1, 1, 0, 8, x'61', x'6363');
                UPDATE meta SET value = 2 WHERE name <> 'applied_segment';
                """, "test")
        }
        let early = #expect(throws: StoreFailure.self) {
            _ = try DatabaseCheck(directory: folder.path).run()
        }
        #expect(early?.cure == "Start hermesd on it once, which upgrades it.")
        let database = try Database(directory: folder.path)
        let model = try #require(try StoreModel(reading: database, folder: folder))
        #expect(model.sessions[1]?.queue.keys.sorted() == [1, 2])
        #expect(model.sessions[1]?.queue.values.map(\.shared) == [[], []])
        #expect(model.sessions[1]?.subscriptions == [[0x24]: 1])
        #expect(model.sessions[1]?.hasEnded == false)
        var expiries: [[Int64]] = []
        try database.forEachExpiry { session, position, bytes, expiresAtMs in
            expiries.append([Int64(session), Int64(position), Int64(bytes), expiresAtMs])
        }
        #expect(expiries == [[1, 2, 3, 8], [1, 1, 3, 9]], "also where the content is shared")
        var segment = SegmentBuilder(1)
        segment.message(3, "a", "dd")
        segment.queued(1, 3, message: 3, shared: "$share/g/a")
        segment.state(1, end: 4)
        try segment.apply(to: database)
        let after = try #require(try StoreModel(reading: database, folder: folder))
        #expect(after.sessions[1]?.queue[3]?.shared == Array("$share/g/a".utf8))
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
    }

    @Test("a file of version 2 keeps all it holds, and its sequences are facts")
    func upgradedFromVersion2() throws {
        do {
            let connection = try SQLiteConnection.open(
                prepared(), .readWrite, cacheBytes: 1_000_000)
            try DatabaseFormat(
                version: 2, schema: schemaVersion1 + upgradeToVersion2, upgrades: [:]
            ).install(in: connection)
            try connection.execute("INSERT INTO sequences VALUES (x'61', 7)", "test")
        }
        let database = try Database(directory: folder.path)
        let model = try #require(try StoreModel(reading: database, folder: folder))
        let sequence = model.facts[StoreModel.FactName(1, [0x61])]
        #expect(sequence?.value == [0, 0, 0, 0, 0, 0, 0, 7])
        #expect(sequence?.owner == FactOwner([0x61]))
        #expect(try DatabaseCheck(directory: folder.path).run() == [])
        try database.connection.execute("UPDATE facts SET owner = 256", "test")
        // The bounds of receipts are a fact too.
        #expect(try DatabaseCheck(directory: folder.path).run().count == 2)
    }

    @Test("a version that has no upgrade any more is refused")
    func tooOld() throws {
        do { _ = try Database(directory: folder.path) }
        var format = DatabaseFormat.current
        format.version = 8
        format.upgrades = [7: "SELECT 1"]
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path, format: format)
        }
        #expect(failure?.description.contains("version 6, which this program no longer") == true)
    }

    @Test("another program's file is refused")
    func foreign() throws {
        do {
            let connection = try SQLiteConnection.open(
                prepared(), .readWrite, cacheBytes: 1_000_000)
            try connection.execute("CREATE TABLE bookmarks (x)", "test")
        }
        let failure = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path)
        }
        #expect(failure?.description.contains("another program") == true)
    }

    @Test("a crash while the file is made leaves one that can be opened")
    func interruptedCreation() throws {
        do {
            let connection = try SQLiteConnection.open(
                prepared(), .readWrite, cacheBytes: 1_000_000)
            try connection.execute(
                "PRAGMA page_size = 16384; PRAGMA auto_vacuum = 2; PRAGMA journal_mode = WAL",
                "test")
        }
        let database = try Database(directory: folder.path)
        #expect(try database.connection.number("PRAGMA user_version", "read") == 6)
        #expect(try database.connection.number("PRAGMA auto_vacuum", "read") == 2)
    }

    private func prepared() throws -> String {
        let path = try DatabaseFile.path(in: folder.path)
        try DatabaseFile.prepare(path)
        return path
    }

    @Test("a folder that cannot be written, or is not there, is an error for people")
    func unusableFolder() throws {
        do { _ = try Database(directory: folder.path) }
        chmod(folder.path, 0o755)
        chmod(folder.file, 0o644)
        let failure = asNobody {
            #expect(throws: StoreFailure.self) { _ = try Database(directory: folder.path) }
        }
        chmod(folder.path, 0o700)
        #expect(failure?.kind == .permissions)
        #expect(failure?.description.contains(folder.file) == true)

        let missing = #expect(throws: StoreFailure.self) {
            _ = try Database(directory: folder.path + "/missing")
        }
        #expect(missing?.description.contains("no such file or directory") == true)
    }

    @Test("every view can be read, and shows untrusted text quoted")
    func views() throws {
        let database = try Database(directory: folder.path)
        var segment = SegmentBuilder(1)
        segment.session(1, "phone\u{1B}[2J")
        segment.state(1, end: 2)
        segment.message(1, "t", "x")
        segment.queued(1, 1, message: 1)
        segment.message(2, "w", "gone")
        segment.will(1, message: 2)
        segment.message(3, "r", "kept")
        segment.retained("r", message: 3)
        segment.subscription(1, "a/#", qos: 1)
        segment.fact(1, "c\"", [4])
        try segment.apply(to: database)
        // As in an operator's shell; the broker itself reads no view.
        try database.connection.execute("PRAGMA trusted_schema = ON", "test")
        let views = [
            "session_list", "subscription_list", "queue_list", "retained_list", "will_list",
            "fact_list",
        ]
        for view in views {
            #expect(
                try database.connection.number("SELECT count(*) FROM \(view)", "read") == 1,
                "\(view)")
        }
        let row = try database.connection.prepare("SELECT client FROM session_list", "read")
        #expect(try row.next())
        #expect(row.text(0) == "\"phone\\u001b[2J\"")
        try database.name([FactTable(number: 1, name: "things")])
        let fact = try database.connection.prepare("SELECT * FROM fact_list", "read")
        #expect(try fact.next())
        #expect(fact.text(0) == "things")
        #expect((fact.text(2), fact.text(3), fact.text(4)) == ("6322", "\"c\\\"\"", "04"))
    }
}

/// Runs `body` with the file access of an unprivileged user, for this thread alone.
private func asNobody<Result>(_ body: () throws -> Result) rethrows -> Result {
    typealias SetUser = @convention(c) (uid_t) -> CInt
    guard geteuid() == 0, let symbol = dlsym(nil, "setfsuid") else { return try body() }
    // The C library's module omits setfsuid(2), which has this signature.
    let setUser = unsafeBitCast(symbol, to: SetUser.self)
    _ = setUser(65_534)
    defer { _ = setUser(0) }
    return try body()
}
