import CSQLite
import Glibc

/// What keeps the files small, in slices, between the transactions of the mover.
extension Database {
    /// Sizes in bytes.
    public struct Sizes: Sendable, Hashable {
        /// The file without its write-ahead log.
        public var file: Int
        /// The part of the file that holds nothing.
        public var free: Int
        /// The write-ahead log, which is reused once its content is in the file.
        public var writeAheadLog: Int
    }

    /// What a checkpoint has done.
    public struct Checkpoint: Sendable, Hashable {
        /// The whole log is in the file, and is written from its beginning again.
        public var isComplete: Bool
        /// Pages in the log since it began, in bytes.
        public var logBytes: Int
    }

    /// A write-ahead log of this size is cut to nothing once its content is in the file.
    static let largestIdleLog = 32 * 1_024 * 1_024
    /// Free pages that are kept for what comes next: this many, and a quarter of those in use.
    static let spareFreePages = 256
    /// How long an upkeep step waits for a reader.
    private static let patienceMs: Int32 = 100

    public func sizes() throws(StoreFailure) -> Sizes {
        let pageBytes = Int(try connection.number("PRAGMA page_size", "read"))
        let pages = Int(try connection.number("PRAGMA page_count", "read"))
        let free = Int(try connection.number("PRAGMA freelist_count", "read"))
        var status = stat()
        let hasLog = stat(path + "-wal", &status) == 0
        return Sizes(
            file: pages * pageBytes, free: free * pageBytes,
            writeAheadLog: hasLog ? Int(status.st_size) : 0)
    }

    /// Brings the write-ahead log into the file, and synchronises both.
    ///
    /// It waits for no reader: what a reader still needs stays in the log until the next call.
    /// - Returns: what it has done.
    /// - Throws: ``StoreFailure``; the log keeps everything then, and the call may be repeated.
    @discardableResult
    public func checkpoint() throws(StoreFailure) -> Checkpoint {
        let done = try checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        guard done.isComplete, done.logBytes >= Self.largestIdleLog else { return done }
        // The log is written from its beginning again now, but keeps its size until it is cut.
        sqlite3_busy_timeout(connection.handle, Self.patienceMs)
        defer { sqlite3_busy_timeout(connection.handle, SQLiteConnection.patienceMs) }
        _ = try checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        return done
    }

    private func checkpoint(_ mode: Int32) throws(StoreFailure) -> Checkpoint {
        var frames: Int32 = 0
        var done: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(connection.handle, "main", mode, &frames, &done)
        switch code & 0xFF {
        case SQLITE_OK, SQLITE_BUSY:
            return Checkpoint(
                isComplete: code == SQLITE_OK && done >= frames,
                logBytes: Int(max(frames, 0)) * DatabaseFormat.pageBytes)
        default: throw connection.failure("bring the write-ahead log into")
        }
    }

    /// Gives cached pages back, which the next segment reads again where it needs them.
    public func releaseMemory() {
        // Answers only whether it could.
        _ = sqlite3_db_release_memory(connection.handle)
    }

    /// Gives free pages back to the file system, a slice at a time, beyond what is worth keeping.
    ///
    /// A slice moves at most `mostPages` pages and ends with a ``checkpoint()``, by which the file
    /// shrinks: without it the log would grow as long as there is something to give back.
    /// - Returns: true if there is more to give back.
    /// - Throws: ``StoreFailure``; the slice has given nothing back then.
    public func reclaim(mostPages: Int = 512) throws(StoreFailure) -> Bool {
        let pages = Int(try connection.number("PRAGMA page_count", "read"))
        let free = Int(try connection.number("PRAGMA freelist_count", "read"))
        let excess = free - Self.spareFreePages - (pages - free) / 4
        guard excess > 0 else { return false }
        let slice = min(excess, mostPages)
        try connection.execute("PRAGMA incremental_vacuum(\(slice))", "shrink")
        try checkpoint()
        return excess > slice
    }
}
