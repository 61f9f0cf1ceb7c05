import Glibc

/// The folder that a backup goes to: made with mode 0700, or there and empty.
struct BackupFolder: ~Copyable {
    let path: String
    /// It was made here, so it goes again unless ``keep()`` is called.
    private var isOurs: Bool

    /// What a copy needs beside the bytes of the database, for its rollback and the folder.
    private static let spareBytes: UInt64 = 4 << 20

    private init(path: String, isOurs: Bool) {
        self.path = path
        self.isOurs = isOurs
    }

    deinit { if isOurs { _ = rmdir(path) } }

    /// Makes or checks the folder, and that its file system has room for so many bytes.
    ///
    /// - Parameters:
    ///   - path: absolute; its parent folder must exist.
    ///   - bytes: of the database.
    /// - Returns: the folder, which goes again unless it is kept.
    /// - Throws: ``StoreFailure`` that says what is wrong with it; `.outOfSpace` without room.
    static func prepare(_ path: String, bytes: Int) throws(StoreFailure) -> BackupFolder {
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw StoreFailure(
                operation: "back up to", path: path, reason: "it is no absolute path", kind: .other,
                cure: "Name the folder from / on.")
        }
        let isOurs = mkdir(path, 0o700) == 0
        if !isOurs {
            guard errno == EEXIST else {
                throw StoreFailure(operation: "make the folder", path: path, errno: errno)
            }
            try checkEmpty(path)
        }
        let folder = BackupFolder(path: path, isOurs: isOurs)
        // Of a copy that is on the disk, the way there has to be as well.
        if isOurs { try DatabaseFile.syncDirectory(of: "\(path)/../") }
        try checkRoom(path, bytes: bytes)
        return folder
    }

    /// The copy is in it.
    mutating func keep() { isOurs = false }

    private static func checkRoom(_ path: String, bytes: Int) throws(StoreFailure) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else {
            throw StoreFailure(operation: "back up to", path: path, errno: errno)
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
            throw StoreFailure(operation: "back up to", path: path, errno: errno)
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
