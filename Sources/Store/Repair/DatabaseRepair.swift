import CCheckedPages
import CSQLite
import Glibc
import PlainText
import SystemFiles

/// Saves what undamaged pages of a database hold, when others are damaged.
///
/// A new database gets the rows of all pages whose checksums fit, and takes the place of the damaged
/// one, which stays in a folder `damaged-<number>`. What refers to lost rows is removed from it, and its
/// sums are made anew, so that a check of it has no findings. What is lost is written to `damage.txt`.
///
/// The journal stays as it is: the next start applies what is in no database yet.
public struct DatabaseRepair {
    /// What a repair has done.
    public struct Report: Sendable, Hashable {
        /// The folder that has the damaged file; `nil` when no page was damaged, and nothing was done.
        public internal(set) var folder: String?
        /// Rows of each table in the new database.
        public internal(set) var kept: [Kept] = []
        /// Sentences about what is lost.
        public internal(set) var losses: [String] = []
    }

    /// The number of a table's rows that were saved.
    public struct Kept: Sendable, Hashable {
        public let table: String
        public let rows: Int
    }

    /// Repairs the database of a data directory that the caller has locked.
    ///
    /// - Throws: ``StoreFailure`` when the file cannot be read or written, or has lost what nothing can
    ///   be saved without; the database has not changed then.
    public static func run(in directory: String) throws(StoreFailure) -> Report {
        let path = try DatabaseFile.path(in: directory)
        try emptyLog(path)
        var file = try PageFile(path)
        try requireFormat(&file, path)
        var damage = RepairedRows(path: path)
        try damage.find(in: &file)
        guard !file.damaged.isEmpty else { return Report() }
        let new = path + ".repaired"
        for name in [new, new + "-wal", new + "-shm", new + "-journal"] { _ = unlink(name) }
        do throws(StoreFailure) {
            var report = try damage.write(to: new, &file)
            report.folder = try exchange(path, new, in: directory, report.losses)
            try UnreadableDatabase.forget(in: directory)
            return report
        } catch {
            _ = unlink(new)
            throw error
        }
    }

    /// Moves what the write-ahead log holds to the file, and with it newer versions of damaged pages.
    private static func emptyLog(_ path: String) throws(StoreFailure) {
        guard access(path, F_OK) == 0 else {
            throw StoreFailure(operation: "open", path: path, errno: errno)
        }
        // SQLite moves the log also when it closes a file, and may make one without checksums worse.
        try requireSums(path)
        // Without a log there is nothing to move, and SQLite opens no file that has lost its end.
        guard hasLog(path) else { return }
        do throws(StoreFailure) {
            let connection = try SQLiteConnection.open(
                path, .readWrite, cacheBytes: Database.cacheBytes)
            try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)", "repair")
        } catch {
            guard error.kind == .damaged else { throw error }
            throw unsaved(path, error.reason)
        }
        guard !hasLog(path) else {
            throw StoreFailure(
                operation: "repair", path: path, reason: "another program reads it", kind: .locked,
                cure: "End that program, and repeat.")
        }
    }

    private static func hasLog(_ path: String) -> Bool {
        var status = stat()
        return stat(path + "-wal", &status) == 0 && status.st_size > 0
    }

    private static func requireSums(_ path: String) throws(StoreFailure) {
        switch try PageFile(path).sums() {
        case .there: return
        case .none:
            throw StoreFailure(
                operation: "repair", path: path, reason: "its pages have no checksums",
                kind: .other,
                cure: "Start the broker once: it gives them to a sound database, and says what to "
                    + "do about another.")
        case .unknown:
            throw StoreFailure(
                operation: "repair", path: path, reason: "its first page is damaged",
                kind: .damaged,
                cure: "Copy the file and its log (hermes.sqlite-wal) aside, and start on a backup.")
        }
    }

    private static func requireFormat(
        _ file: inout PageFile, _ path: String
    ) throws(StoreFailure) {
        guard let first = file.page(1) else { throw unsaved(path, "its first page is damaged") }
        guard first.number(at: 16, bytes: 2) == UInt64(hermes_page_bytes),
            first[20] == UInt8(hermes_page_reserved),
            first.number(at: 68, bytes: 4) == UInt64(DatabaseFormat.applicationIdentifier),
            first.number(at: 60, bytes: 4) == UInt64(DatabaseFormat.current.version)
        else {
            throw StoreFailure(
                operation: "repair", path: path,
                reason: "its pages have no checksums, or its format is not version "
                    + "\(DatabaseFormat.current.version)", kind: .other,
                cure: "Use the hermesctl of the version that wrote it, or start on a backup.")
        }
    }

    static func unsaved(_ path: String, _ reason: String) -> StoreFailure {
        StoreFailure(
            operation: "repair", path: path, reason: reason, kind: .damaged,
            cure: "Start on a backup.")
    }

    /// Puts the new file in the place of the damaged one, which gets a name in a folder of its own.
    /// At no time is there no database.
    private static func exchange(
        _ path: String, _ new: String, in directory: String, _ losses: [String]
    ) throws(StoreFailure) -> String {
        var number = 1
        while access("\(directory)/damaged-\(number)", F_OK) == 0 { number += 1 }
        let folder = "\(directory)/damaged-\(number)"
        guard mkdir(folder, 0o700) == 0 else {
            throw StoreFailure(operation: "make the folder", path: folder, errno: errno)
        }
        do throws(SystemError) {
            try OpenFile(folder, flags: O_RDONLY | O_DIRECTORY).adoptFolderOwner()
        } catch {
            throw StoreFailure(error)
        }
        // Told before it happens, so that a crash cannot leave the new database without a word of it.
        try StoredDamage.record(
            losses.map { "\($0) (the damaged file is in \(VisibleText.quoted(folder)))" },
            in: directory)
        guard link(path, "\(folder)/\(DatabaseFile.name)") == 0 else {
            throw StoreFailure(operation: "set aside", path: path, errno: errno)
        }
        try DatabaseFile.syncDirectory(of: "\(folder)/\(DatabaseFile.name)")
        // The log is empty, and belongs to the damaged file.
        for name in [path + "-wal", path + "-shm"] { _ = unlink(name) }
        guard rename(new, path) == 0 else {
            throw StoreFailure(operation: "rename", path: new, errno: errno)
        }
        try DatabaseFile.syncDirectory(of: path)
        return folder
    }
}
