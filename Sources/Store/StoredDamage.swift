import Glibc
import SystemFiles

/// The losses of a data directory that its operator has not accepted yet.
///
/// Damaged journal files are kept under another name. A loss that leaves no such file, such as a
/// missing segment or a replaced database, is written to `damage.txt`, one line each, before the
/// store continues without it. Both stay until the operator accepts the loss.
public struct StoredDamage: Sendable, Hashable {
    /// Paths of damaged journal files that were set aside; sorted.
    public var setAsideFiles: [String]
    /// Lines of `damage.txt` for people to read, oldest first; untrusted parts are escaped.
    public var records: [String]

    public var isEmpty: Bool { setAsideFiles.isEmpty && records.isEmpty }

    private static let recordName = "damage.txt"
    /// The most lines of `damage.txt`; later losses are not added.
    private static let mostRecords = 200
    /// The most bytes that are read of `damage.txt`; the broker writes far fewer.
    private static let mostBytes = 1 << 20

    /// Reads the losses and changes nothing, so that it may run beside a broker.
    ///
    /// - Throws: ``StoreFailure`` if a file or folder cannot be read.
    public init(in directory: String) throws(StoreFailure) {
        setAsideFiles = try Self.setAsideFiles(in: directory)
        records = try Self.records(in: directory)
    }

    /// Accepts the losses: renames the damaged files and `damage.txt`, which nothing asks about any
    /// more. A database that keeps the broker from starting is set aside, so that the next start
    /// begins with an empty one.
    ///
    /// For a data directory that no broker uses. A running broker does the same by
    /// ``DurableStore/acceptLoss(reply:)``.
    /// - Returns: the paths that the files had; empty if there was nothing to accept.
    /// - Throws: ``StoreFailure``; files that were already renamed stay accepted.
    public static func accept(in directory: String) throws(StoreFailure) -> [String] {
        var accepted: [String] = []
        if let folder = try DurableStore.setAsideUnreadable(in: directory) {
            accepted.append(folder)
        }
        for path in try setAsideFiles(in: directory) {
            guard JournalDirectory.accept(path) else {
                throw StoreFailure(operation: "rename", path: path, errno: errno)
            }
            accepted.append(path)
        }
        if let path = try acceptRecords(in: directory) { accepted.append(path) }
        return accepted
    }

    /// Adds lines to `damage.txt`, durably. Lines that are already there are not repeated.
    ///
    /// - Throws: ``StoreFailure``; the file has not changed then.
    static func record(_ lines: [String], in directory: String) throws(StoreFailure) {
        var all = try records(in: directory)
        let known = Set(all)
        all += lines.filter { !known.contains($0) }
        guard all.count > known.count else { return }
        let text = all.prefix(mostRecords).map { $0 + "\n" }.joined()
        let path = "\(directory)/\(recordName)"
        try replace(path, by: Array(text.utf8))
    }

    /// Renames `damage.txt` and returns its former path; `nil` if there is none.
    static func acceptRecords(in directory: String) throws(StoreFailure) -> String? {
        let path = "\(directory)/\(recordName)"
        guard access(path, F_OK) == 0 else { return nil }
        var index = 1
        while access("\(directory)/damage-accepted-\(index).txt", F_OK) == 0 { index += 1 }
        guard rename(path, "\(directory)/damage-accepted-\(index).txt") == 0 else {
            throw StoreFailure(operation: "rename", path: path, errno: errno)
        }
        try DatabaseFile.syncDirectory(of: path)
        return path
    }

    // MARK: Files

    private static func setAsideFiles(in directory: String) throws(StoreFailure) -> [String] {
        let path = "\(directory)/journal"
        // Opening the journal's directory would create it.
        guard access(path, F_OK) == 0 else { return [] }
        return try JournalDirectory(path).list().setAside.map { "\(path)/\($0)" }
    }

    private static func records(in directory: String) throws(StoreFailure) -> [String] {
        let path = "\(directory)/\(recordName)"
        let bytes: [UInt8]
        do throws(SystemError) {
            let file = try OpenFile(path, flags: O_RDONLY | O_NOFOLLOW)
            bytes = try file.readAll(maximumByteCount: mostBytes)
        } catch {
            if error.code == ENOENT { return [] }
            throw StoreFailure(error)
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Replaces the content of a file, wholly or not at all.
    private static func replace(_ path: String, by content: [UInt8]) throws(StoreFailure) {
        let unfinished = path + ".new"
        do throws(SystemError) {
            let file = try OpenFile(
                unfinished, flags: O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, call: "write")
            try file.adoptFolderOwner()
            try file.writeAll(content)
            try file.synchronize()
        } catch {
            throw StoreFailure(error, operation: "write")
        }
        guard rename(unfinished, path) == 0 else {
            throw StoreFailure(operation: "write", path: path, errno: errno)
        }
        try DatabaseFile.syncDirectory(of: path)
    }
}
