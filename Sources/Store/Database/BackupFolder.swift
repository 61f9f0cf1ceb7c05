import Glibc
import SystemFiles

/// The folder for a backup. It is created with mode 0700, or exists and is empty. Unless
/// ``keep()`` is called, what this value has made is removed again.
struct BackupFolder: ~Copyable {
    let path: String
    /// True when this value created the folder.
    private let isOurs: Bool
    /// Paths of the files that it has written.
    private var written: [String] = []
    private var isKept = false

    /// Bytes of free space needed beside the copy, for SQLite's rollback file and the folder.
    private static let spareBytes: UInt64 = 4 << 20

    private init(path: String, isOurs: Bool) {
        self.path = path
        self.isOurs = isOurs
    }

    deinit {
        guard !isKept else { return }
        for path in written { _ = unlink(path) }
        if isOurs { _ = rmdir(path) }
    }

    /// Creates or checks the folder, and checks that its file system has room.
    ///
    /// - Parameters:
    ///   - path: absolute; the parent folder must exist, and the folder must lie outside the data
    ///     directory.
    ///   - database: path of the database file in the data directory.
    ///   - bytes: size of the database.
    /// - Returns: the folder, which is removed again unless it is kept.
    /// - Throws: ``StoreFailure`` that says what is wrong; `.outOfSpace` without room.
    static func prepare(
        _ path: String, of database: String, bytes: Int
    ) throws(StoreFailure) -> BackupFolder {
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw StoreFailure(
                operation: "back up to", path: path, reason: "it is no absolute path", kind: .other,
                cure: "Name the folder from / on.")
        }
        try checkOutside(path, of: database)
        let isOurs = mkdir(path, 0o700) == 0
        if !isOurs {
            guard errno == EEXIST else { throw failure("make the folder", path, errno) }
            try checkEmpty(path)
        }
        let folder = BackupFolder(path: path, isOurs: isOurs)
        // A copy is durable only if the new folder's entry in its parent is.
        if isOurs { try DatabaseFile.syncDirectory(of: "\(path)/../") }
        try checkRoom(path, bytes: bytes)
        return folder
    }

    /// The copy is complete, so the folder stays.
    mutating func keep() { isKept = true }

    /// Writes a file with mode 0600; it is on disk when this returns.
    mutating func write(_ file: BackupFile) throws(StoreFailure) {
        let target = "\(path)/\(file.name)"
        do throws(SystemError) {
            written.append(target)
            try FileChange.replace(target, with: file.contents)
        } catch {
            throw StoreFailure(operation: "write", path: target, errno: error.code)
        }
    }

    /// A copy inside the data directory would be lost together with the data.
    private static func checkOutside(
        _ path: String, of database: String
    ) throws(StoreFailure) {
        // For a folder that does not exist yet its parent is checked; without a parent, creating it
        // fails.
        guard let resolved = realpath(path, nil) ?? realpath(parent(of: path), nil)
        else { return }
        defer { free(resolved) }
        let folder = String(cString: resolved)
        let data = parent(of: database)
        guard folder != data, !folder.hasPrefix(data == "/" ? data : "\(data)/") else {
            throw StoreFailure(
                operation: "back up to", path: path,
                reason: "it lies in the data directory, and would be lost with it", kind: .other,
                cure: "Name a folder outside, best on another disk.")
        }
    }

    /// The store's usual advice is about the data directory, so these failures carry their own.
    private static func failure(_ operation: String, _ path: String, _ code: Int32) -> StoreFailure
    {
        let cure: String? =
            switch code {
            case ENOENT: "Make the folder above it first, or name another."
            case EACCES, EPERM, EROFS:
                "Name a folder that the broker's user can write to; its service may see less than you."
            default: nil
            }
        return StoreFailure(operation: operation, path: path, errno: code, cure: cure)
    }

    /// The path without its last component.
    private static func parent(of path: String) -> String {
        var bytes = path.utf8[...]
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        while let last = bytes.last, last != UInt8(ascii: "/") { bytes.removeLast() }
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func checkRoom(_ path: String, bytes: Int) throws(StoreFailure) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else {
            throw failure("back up to", path, errno)
        }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        let needed = UInt64(bytes) + Self.spareBytes
        guard free >= needed else {
            throw StoreFailure(
                operation: "back up to", path: path,
                reason: "the copy needs \(needed >> 20) MiB, and \(free >> 20) MiB are free",
                code: ENOSPC, kind: .outOfSpace,
                cure: "Free space there, or name a folder on another file system.")
        }
    }

    private static func checkEmpty(_ path: String) throws(StoreFailure) {
        guard let stream = opendir(path) else {
            throw failure("back up to", path, errno)
        }
        defer { closedir(stream) }
        var count = 0
        while readdir(stream) != nil { count += 1 }
        // "." and "..".
        guard count <= 2 else {
            throw StoreFailure(
                operation: "back up to", path: path, reason: "the folder is not empty",
                kind: .other, cure: "Name one that does not exist yet, or an empty one.")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 == 0 else {
            throw StoreFailure(
                operation: "back up to", path: path, reason: "others can enter the folder",
                kind: .permissions, cure: "Give it mode 0700.")
        }
    }
}
