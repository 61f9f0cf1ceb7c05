import CSQLite
import Glibc
import SystemFiles

/// A backup: a copy of the database that is made in steps, while the mover continues with its
/// segments.
///
/// It belongs to the thread of its ``Database``. Writes of that connection also go to pages that
/// are already copied, so the copy has the state of the last step. A copy that is not finished is
/// removed; if that fails, its name still differs from a database's.
public final class DatabaseBackup {
    private let database: Database
    private let copy: SQLiteConnection
    /// Path of the finished copy.
    private let target: String
    private var backup: OpaquePointer?
    private var isFinished = false

    /// The progress of the copy.
    public struct Progress: Sendable, Hashable {
        public let pages: Int
        public let remainingPages: Int
        public var isDone: Bool { remainingPages == 0 }
    }

    /// Begins a copy named `hermes.sqlite` in another folder, which must not contain that file.
    public init(of database: Database, to directory: String) throws(StoreFailure) {
        let path = try DatabaseFile.path(in: directory)
        var status = stat()
        guard lstat(path, &status) != 0 else {
            throw StoreFailure(
                operation: "write a copy to", path: path, reason: "the file exists", kind: .other,
                cure: "Name an empty folder.")
        }
        let unfinished = path + ".unfinished"
        try DatabaseFile.prepare(unfinished)
        copy = try SQLiteConnection.open(unfinished, .readWrite, cacheBytes: 2 * 1_024 * 1_024)
        target = path
        self.database = database
        // From here on, a failure runs `deinit`, which removes the file. The copy cannot be used
        // before its last step, so it needs no safety yet.
        try copy.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", "open")
        backup = sqlite3_backup_init(copy.handle, "main", database.connection.handle, "main")
        guard backup != nil else { throw copy.failure("copy to") }
    }

    deinit {
        if let backup { sqlite3_backup_finish(backup) }
        if !isFinished { _ = unlink(copy.path) }
    }

    /// Copies the next pages. After the last step the copy is complete and durable.
    /// - Throws: ``StoreFailure``; the copy cannot be continued then.
    public func step(pages: Int = 1_024) throws(StoreFailure) -> Progress {
        guard let backup else { preconditionFailure("a step after the end of a backup") }
        let code = sqlite3_backup_step(backup, Int32(clamping: pages))
        let progress = Progress(
            pages: Int(sqlite3_backup_pagecount(backup)),
            remainingPages: code == SQLITE_DONE ? 0 : max(Int(sqlite3_backup_remaining(backup)), 1))
        switch code & 0xFF {
        case SQLITE_OK, SQLITE_BUSY, SQLITE_LOCKED:
            return progress
        case SQLITE_DONE:
            self.backup = nil
            guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw copy.failure("copy to") }
            try detach()
            try synchronise()
            guard rename(copy.path, target) == 0 else {
                throw StoreFailure(operation: "rename", path: copy.path, errno: errno)
            }
            isFinished = true
            try DatabaseFile.syncDirectory(of: target)
            return progress
        default:
            self.backup = nil
            sqlite3_backup_finish(backup)
            throw StoreFailure(
                operation: "copy to", path: copy.path, sqliteCode: code,
                reason: String(cString: sqlite3_errstr(code)))
        }
    }

    /// Makes the copy a database of its own, without a write-ahead log. It also forgets the
    /// journal's progress: a start on the copy would otherwise miss segments of the journal.
    private func detach() throws(StoreFailure) {
        try copy.execute(
            """
            PRAGMA journal_mode = DELETE;
            UPDATE meta SET value = 0 WHERE name = 'applied_segment'
            """, "finish")
    }

    private func synchronise() throws(StoreFailure) {
        do throws(SystemError) {
            try OpenFile(copy.path, flags: O_RDONLY | O_NOFOLLOW).synchronize()
        } catch {
            throw StoreFailure(error)
        }
    }
}
