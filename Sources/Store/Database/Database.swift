import CSQLite

/// The database for state that outlives a journal segment: a SQLite file with sessions,
/// subscriptions, queues, retained messages, wills and facts (docs/decisions/0009, 0038).
///
/// This is the only connection that writes. It belongs to one thread at a time: the thread that
/// starts the store, then the mover. Readers have connections of their own (``QueueReader``,
/// ``DatabaseCheck``). Neither they nor the journal ever wait for this connection.
public final class Database {
    /// The state of the database relative to the journal.
    public struct Progress: Sendable, Hashable {
        /// The last journal segment whose changes are in the database; 0 before the first.
        public internal(set) var appliedSegment: UInt64
        /// The highest session number that was ever assigned, as far as applied segments tell.
        public internal(set) var lastSession: UInt64
        /// The highest message number that was ever assigned, as far as applied segments tell.
        public internal(set) var lastMessage: UInt64
    }

    let connection: SQLiteConnection
    let writer: SegmentWriter
    let facts: FactStatements
    public internal(set) var progress: Progress
    /// The last segment of which rows may have been removed ahead; see ``RemovalSlices``.
    var removedAhead: UInt64

    /// Size of this connection's page cache in bytes.
    static let cacheBytes = 16 * 1_024 * 1_024

    /// Opens `hermes.sqlite` in a folder. Creates the file if it is missing, and upgrades an older
    /// format.
    ///
    /// The folder must be locked against other processes, and this process must have no other
    /// connection open.
    /// - Throws: ``StoreFailure``; nothing has changed then.
    public convenience init(directory: String) throws(StoreFailure) {
        try self.init(directory: directory, format: .current)
    }

    init(directory: String, format: DatabaseFormat) throws(StoreFailure) {
        let path = try DatabaseFile.path(in: directory)
        try DatabaseFile.prepare(path)
        let connection = try SQLiteConnection.open(
            path, .readWrite, cacheBytes: Self.cacheBytes)
        try format.install(in: connection)
        // The mode is a property of the file, and a backup or another program may have changed it.
        try connection.execute("PRAGMA journal_mode = WAL", "open")
        // Every commit is synchronised, since the journal's segment is reused after it. Checkpoints
        // are made by the mover, outside its transactions. Deleted content is overwritten where
        // that needs no further write.
        try connection.execute(
            """
            PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = FAST;
            PRAGMA temp_store = MEMORY
            """, "open")
        writer = try SegmentWriter.prepare(on: connection)
        facts = try FactStatements.prepare(on: connection)
        progress = try Self.progress(connection)
        removedAhead = UInt64(
            clamping: try connection.number(
                "SELECT value FROM meta WHERE name = 'removed_ahead'", "read"))
        self.connection = connection
    }

    /// The path of the file, with symbolic links resolved.
    public var path: String { connection.path }

    private static func progress(
        _ connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> Progress {
        let statement = try connection.prepare("SELECT name, value FROM meta", "read")
        var values: [String: UInt64] = [:]
        while try statement.next() { values[statement.text(0)] = statement.number(1) }
        guard values.values.allSatisfy({ $0 < StoredBounds.numbers }) else {
            throw StoreFailure(
                operation: "read", path: connection.path,
                reason: "its table meta has a number that is never reached", kind: .damaged,
                cure: "Start on a backup.")
        }
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
