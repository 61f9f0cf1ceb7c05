import Glibc
import PlainText

extension DurableStore {
    /// Opens the database of a data directory that the caller has locked.
    ///
    /// A database that cannot be opened because it is damaged is set aside in a folder
    /// `damaged-<number>`, and a new one is created, so that the broker starts and reports the
    /// loss. The journal is set aside with it: its records mean nothing without the sessions in the
    /// database, and together the two can be repaired.
    /// - Throws: ``StoreFailure``; the files are unchanged then, or set aside.
    static func openDatabase(in directory: String) throws(StoreFailure) -> Database {
        do {
            return try Database(directory: directory)
        } catch {
            guard error.kind == .damaged else { throw error }
            try setAside(directory, error)
            return try Database(directory: directory)
        }
    }

    private static func setAside(
        _ directory: String, _ failure: StoreFailure
    ) throws(StoreFailure) {
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
    }
}
