import CSQLite

/// What lives longer than a journal segment: a SQLite file with sessions, subscriptions, queues,
/// retained messages, wills and sequences (docs/decisions/0009).
///
/// The one writing connection. It belongs to one thread at a time: the one that starts the store, and
/// then the mover. Readers have connections of their own (``QueueReader``, ``DatabaseCheck``), and
/// neither they nor the journal ever wait for this one.
public final class Database {
    /// How far the database has come.
    public struct Progress: Sendable, Hashable {
        /// The last journal segment whose changes are in the database; 0 before the first.
        public internal(set) var appliedSegment: UInt64
        /// The highest numbers ever given, as far as applied segments tell.
        public internal(set) var lastSession: UInt64
        public internal(set) var lastMessage: UInt64
    }

    let connection: SQLiteConnection
    let writer: SegmentWriter
    public internal(set) var progress: Progress

    /// The page cache of this connection, in bytes.
    static let cacheBytes = 16 * 1_024 * 1_024

    /// Opens `hermes.sqlite` in a folder, makes it when it is missing, upgrades an older format.
    ///
    /// The folder must be locked against other processes, and no other connection of this process
    /// may be open.
    /// - Throws: ``StoreFailure``; nothing has changed then, and the file stays as it is.
    public convenience init(directory: String) throws(StoreFailure) {
        try self.init(directory: directory, format: .current)
    }

    init(directory: String, format: DatabaseFormat) throws(StoreFailure) {
        let path = try DatabaseFile.path(in: directory)
        try DatabaseFile.prepare(path)
        let connection = try SQLiteConnection.open(
            path, .readWrite, cacheBytes: Self.cacheBytes)
        try format.install(in: connection)
        // The mode is a property of the file; a backup or another program may have changed it.
        try connection.execute("PRAGMA journal_mode = WAL", "open")
        // Every commit is synchronised, for the journal's segment is reused after it. Checkpoints
        // are the mover's, off the path of its transactions. What is deleted is overwritten where
        // that costs no further write.
        try connection.execute(
            """
            PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = FAST;
            PRAGMA temp_store = MEMORY
            """, "open")
        writer = try SegmentWriter.prepare(on: connection)
        progress = try Self.progress(connection)
        self.connection = connection
    }

    /// The resolved path of the file.
    public var path: String { connection.path }

    private static func progress(
        _ connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> Progress {
        let statement = try connection.prepare("SELECT name, value FROM meta", "read")
        var values: [String: UInt64] = [:]
        while try statement.next() { values[statement.text(0)] = statement.number(1) }
        guard let segment = values["applied_segment"], let session = values["last_session"],
            let message = values["last_message"]
        else {
            throw StoreFailure(
                operation: "read", path: connection.path, reason: "its table meta lacks a row",
                kind: .damaged, cure: "Start on a backup.")
        }
        return Progress(appliedSegment: segment, lastSession: session, lastMessage: message)
    }
}
