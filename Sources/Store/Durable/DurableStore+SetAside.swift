import Glibc

extension DurableStore {
    /// Opens the database of a data directory that the caller has locked.
    ///
    /// One that cannot be opened at all is set aside whole, in a folder `damaged-<number>`, and a new
    /// one begun: the broker starts, and says what it lost. The journal goes with it, for without the
    /// sessions that its records are about they mean nothing, and together the two can be repaired.
    /// - Throws: ``StoreFailure``; what was there is as before, or set aside.
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
        // Written down first: a crash must not leave a new database that knows of nothing.
        try StoredDamage.record(
            [
                "the database cannot be opened (\(failure.reason)); it is kept with its journal in "
                    + "\(StoreFailure.quoted(folder)), and all that they held is lost"
            ], in: directory)
        guard mkdir(folder, 0o700) == 0 else {
            throw StoreFailure(operation: "make the folder", path: folder, errno: errno)
        }
        // The journal first, and the database itself last: a start in between does all of it again.
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
