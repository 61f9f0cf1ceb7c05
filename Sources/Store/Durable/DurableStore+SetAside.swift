import Glibc
import PlainText
import SystemFiles

extension DurableStore {
    /// Opens the database of a data directory that the caller has locked.
    ///
    /// A database that cannot be opened because it is damaged keeps the broker from starting: with
    /// an empty one it would admit clients, and their sessions and messages would seem never to have
    /// been. ``setAsideUnreadable(in:)`` is the operator's way on; ``UnreadableDatabase`` says that
    /// it may be taken.
    /// - Throws: ``StoreFailure``; the files are unchanged then.
    static func openDatabase(in directory: String) throws(StoreFailure) -> Database {
        do {
            let database = try Database(directory: directory)
            try UnreadableDatabase.forget(in: directory)
            return database
        } catch {
            guard error.kind == .damaged else { throw error }
            try UnreadableDatabase.note(in: directory)
            throw StoreFailure(
                operation: error.operation, path: error.path, reason: error.reason,
                code: error.code, kind: .damaged,
                cure: """
                    Start on a backup, or save what its other pages hold: hermesctl store repair \
                    --data-directory '\(VisibleText.escaped(directory))'. To start without the sessions, queues and retained messages \
                    that it held, keeping its files, run first: \
                    hermesctl store accept-loss --data-directory '\(VisibleText.escaped(directory))'
                    """)
        }
    }

    /// Sets a database aside in a folder `damaged-<number>` that a start has found unreadable, and
    /// that still is, so that the next start makes an empty one. The journal goes with it: its
    /// records mean nothing without the sessions in the database, and together the two can be
    /// repaired.
    ///
    /// - Parameter directory: A data directory that the caller has locked.
    /// - Returns: The folder; `nil` when there was nothing to set aside, as after a backup was
    ///   restored.
    /// - Throws: ``StoreFailure``; the files are unchanged then, or set aside.
    static func setAsideUnreadable(in directory: String) throws(StoreFailure) -> String? {
        guard UnreadableDatabase.isNoted(in: directory) else { return nil }
        do throws(StoreFailure) {
            _ = try Database(directory: directory)
        } catch {
            guard error.kind == .damaged else { throw error }
            let folder = try setAside(directory, error)
            try UnreadableDatabase.forget(in: directory)
            return folder
        }
        try UnreadableDatabase.forget(in: directory)
        return nil
    }

    private static func setAside(
        _ directory: String, _ failure: StoreFailure
    ) throws(StoreFailure) -> String {
        var number = 1
        while access("\(directory)/damaged-\(number)", F_OK) == 0 { number += 1 }
        let folder = "\(directory)/damaged-\(number)"
        // The loss is recorded first, so that a crash cannot leave a new database without a trace
        // of it.
        try StoredDamage.record(
            [
                "the database cannot be opened (\(failure.reason)); it is kept with its journal in "
                    + "\(VisibleText.quoted(folder)), and all that they held is lost"
            ], in: directory)
        guard mkdir(folder, 0o700) == 0 else {
            throw StoreFailure(operation: "make the folder", path: folder, errno: errno)
        }
        // The journal first and the database last, so that a start after a crash in between repeats
        // all of it.
        let database = DatabaseFile.name
        for name in ["journal", "\(database)-wal", "\(database)-shm", database] {
            let path = "\(directory)/\(name)"
            guard rename(path, "\(folder)/\(name)") == 0 || errno == ENOENT else {
                throw StoreFailure(operation: "set aside", path: path, errno: errno)
            }
            try DatabaseFile.syncDirectory(of: path)
        }
        try DatabaseFile.syncDirectory(of: "\(folder)/\(database)")
        return folder
    }
}

/// The note of a start that found the database unreadable and therefore ended. Without it nothing is
/// ever set aside: accepting other damage must not touch a database.
enum UnreadableDatabase {
    private static func path(in directory: String) -> String { "\(directory)/unreadable" }

    static func isNoted(in directory: String) -> Bool { access(path(in: directory), F_OK) == 0 }

    static func note(in directory: String) throws(StoreFailure) {
        guard !isNoted(in: directory) else { return }
        do throws(SystemError) {
            _ = try OpenFile(
                path(in: directory), flags: O_WRONLY | O_CREAT | O_NOFOLLOW, call: "write")
        } catch {
            throw StoreFailure(error, operation: "write")
        }
    }

    static func forget(in directory: String) throws(StoreFailure) {
        let path = path(in: directory)
        guard unlink(path) == 0 || errno == ENOENT else {
            throw StoreFailure(operation: "remove", path: path, errno: errno)
        }
    }
}
