import Glibc

/// What a data directory has lost and its operator has not accepted yet.
///
/// Damaged journal files are kept under another name, and tell of themselves. What leaves no such
/// file behind, a missing segment or a database that was replaced, is written down in `damage.txt`,
/// a line each, before the store goes on without it. Both last until somebody accepts the loss.
public struct StoredDamage: Sendable, Hashable {
    /// Paths of damaged journal files that were set aside, sorted.
    public var setAsideFiles: [String]
    /// What was written down, oldest first, as a person should read it; untrusted parts are escaped.
    public var records: [String]

    public var isEmpty: Bool { setAsideFiles.isEmpty && records.isEmpty }

    private static let recordName = "damage.txt"
    /// More lines than these are not written down: nobody reads them.
    private static let mostRecords = 200
    /// Of the file; what a program of ours writes is far below.
    private static let mostBytes = 1 << 20

    /// Reads what is there and changes nothing; also beside a running broker.
    ///
    /// - Throws: ``StoreFailure`` if a file or folder cannot be read.
    public init(in directory: String) throws(StoreFailure) {
        setAsideFiles = try Self.setAsideFiles(in: directory)
        records = try Self.records(in: directory)
    }

    /// Keeps the damaged files and the record under names that nobody asks about any more.
    ///
    /// For a data directory that no broker uses; a running one does it itself
    /// (``DurableStore/acceptLoss(reply:)``).
    /// - Returns: the paths that the files had; empty if there was nothing to accept.
    /// - Throws: ``StoreFailure``; what was renamed before stays accepted.
    public static func accept(in directory: String) throws(StoreFailure) -> [String] {
        var accepted: [String] = []
        for path in try setAsideFiles(in: directory) {
            guard JournalDirectory.accept(path) else {
                throw StoreFailure(operation: "rename", path: path, errno: errno)
            }
            accepted.append(path)
        }
        if let path = try acceptRecords(in: directory) { accepted.append(path) }
        return accepted
    }

    /// Writes down what was lost, durably; lines that are there already are not repeated.
    ///
    /// - Throws: ``StoreFailure``; the record is as before.
    static func record(_ lines: [String], in directory: String) throws(StoreFailure) {
        var all = try records(in: directory)
        let known = Set(all)
        all += lines.filter { !known.contains($0) }
        guard all.count > known.count else { return }
        let text = all.prefix(mostRecords).map { $0 + "\n" }.joined()
        let path = "\(directory)/\(recordName)"
        try replace(path, by: Array(text.utf8))
    }

    /// Renames the record; its former path, or `nil` if there is none.
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
        // To open the journal's directory would make it.
        guard access(path, F_OK) == 0 else { return [] }
        return try JournalDirectory(path).list().setAside.map { "\(path)/\($0)" }
    }

    private static func records(in directory: String) throws(StoreFailure) -> [String] {
        let path = "\(directory)/\(recordName)"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return [] }
            throw StoreFailure(operation: "open", path: path, errno: errno)
        }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < mostBytes {
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { break }
            if count > 0 {
                bytes += chunk[..<count]
            } else if errno != EINTR {
                throw StoreFailure(operation: "read", path: path, errno: errno)
            }
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Puts new content in the place of a file, whole or not at all.
    private static func replace(_ path: String, by content: [UInt8]) throws(StoreFailure) {
        let unfinished = path + ".new"
        let descriptor = open(
            unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw StoreFailure(operation: "write", path: unfinished, errno: errno)
        }
        var written = 0
        while written < content.count {
            let count = content.withUnsafeBytes { bytes in
                write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count >= 0 { written += count }
            if count < 0, errno != EINTR { break }
        }
        let code = written == content.count && fsync(descriptor) == 0 ? 0 : errno
        _ = close(descriptor)
        guard code == 0, rename(unfinished, path) == 0 else {
            throw StoreFailure(operation: "write", path: path, errno: code == 0 ? errno : code)
        }
        try DatabaseFile.syncDirectory(of: path)
    }
}
