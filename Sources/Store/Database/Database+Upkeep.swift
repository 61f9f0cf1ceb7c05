import CSQLite
import Glibc

/// Keeps the files small. The work is done in slices between the mover's transactions.
extension Database {
    /// Sizes of the files, in bytes.
    public struct Sizes: Sendable, Hashable {
        /// The database file, without its write-ahead log.
        public var file: Int
        /// The part of the database file that is free.
        public var free: Int
        /// The write-ahead log. It is used again from its beginning once its content is in the
        /// file.
        public var writeAheadLog: Int
    }

    /// The result of a checkpoint.
    public struct Checkpoint: Sendable, Hashable {
        /// True when the whole log is in the file, so that the log is written from its beginning
        /// again.
        public var isComplete: Bool
        /// Bytes of the pages in the log.
        public var logBytes: Int
    }

    /// A write-ahead log of this many bytes or more is truncated once its content is in the file.
    static let largestIdleLog = 32 * 1_024 * 1_024
    /// Free pages that are kept for later use: this many, plus a quarter of the pages in use.
    static let spareFreePages = 256
    /// Free pages that are kept on a disk that is nearly full: fewer are not worth a slice.
    static let fewestFreePages = 16
    /// Pages that a slice moves on such a disk. The log has each of them with its parent.
    static let smallSlice = 64
    /// Milliseconds that an upkeep step waits for a reader.
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

    /// Bytes of the pages that hold something, in the file and in its log.
    func usedBytes() throws(StoreFailure) -> Int {
        let sizes = try sizes()
        return sizes.file - sizes.free
    }

    /// Copies the write-ahead log into the database file and synchronises both.
    ///
    /// It waits for no reader: pages that a reader needs stay in the log until the next call.
    /// - Parameter cuts: gives the log's space back whatever its size.
    /// - Returns: the result.
    /// - Throws: ``StoreFailure``; the log then keeps everything, and the call may be repeated.
    @discardableResult
    public func checkpoint(cuts: Bool = false) throws(StoreFailure) -> Checkpoint {
        let done = try checkpoint(SQLITE_CHECKPOINT_PASSIVE)
        guard done.isComplete, cuts || done.logBytes >= Self.largestIdleLog else { return done }
        // The log is now written from its beginning, but keeps its size until it is truncated.
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

    /// Gives cached pages back. The next segment reads again those that it needs.
    public func releaseMemory() {
        // The result only says whether it could.
        _ = sqlite3_db_release_memory(connection.handle)
    }

    /// Gives free pages back to the file system, one slice per call, except those worth keeping.
    ///
    /// A slice moves at most `mostPages` pages and ends with a ``checkpoint(cuts:)``, which shrinks
    /// the file. Without the checkpoint the log would grow until all free pages are given back.
    /// - Parameters:
    ///   - mostPages: the largest number of pages that this slice gives back.
    ///   - keepsSpare: false on a disk that is nearly full: nothing is worth keeping then, the log is
    ///     cut as well, and a slice is so small that its log needs little room.
    /// - Returns: true if there is more to give back.
    /// - Throws: ``StoreFailure``; the slice has then given nothing back.
    public func reclaim(
        mostPages: Int = 512, keepsSpare: Bool = true
    ) throws(StoreFailure) -> Bool {
        let pages = Int(try connection.number("PRAGMA page_count", "read"))
        let free = Int(try connection.number("PRAGMA freelist_count", "read"))
        let spare =
            keepsSpare ? Self.spareFreePages + (pages - free) / 4 : Self.fewestFreePages
        let excess = free - spare
        guard excess > 0 else { return false }
        let slice = min(excess, keepsSpare ? mostPages : min(mostPages, Self.smallSlice))
        try connection.execute("PRAGMA incremental_vacuum(\(slice))", "shrink")
        try checkpoint(cuts: !keepsSpare)
        return excess > slice
    }
}
