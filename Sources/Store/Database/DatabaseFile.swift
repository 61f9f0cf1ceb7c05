import Glibc

/// The path of the database's file, and the file made as the data directory demands it.
enum DatabaseFile {
    static let name = "hermes.sqlite"

    /// The file's path in a folder, whose own symbolic links are resolved: SQLite, told to follow
    /// none, would refuse them too.
    static func path(in directory: String) throws(StoreFailure) -> String {
        guard let resolved = realpath(directory, nil) else {
            throw StoreFailure(operation: "open", path: directory, errno: errno)
        }
        defer { free(resolved) }
        let folder = String(cString: resolved)
        return folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }

    /// Makes the file if it is missing, with mode 0600, and takes others' access to one that is there.
    ///
    /// SQLite gives its `-wal` and `-shm` the mode of the file that they belong to. To be called
    /// before the process opens the file otherwise: closing it would end the locks of an open
    /// connection (POSIX record locks belong to the process).
    static func prepare(_ path: String) throws(StoreFailure) {
        var isNew = true
        var descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor < 0, errno == EEXIST {
            isNew = false
            descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        }
        guard descriptor >= 0 else {
            throw StoreFailure(operation: "open", path: path, errno: errno)
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw StoreFailure(operation: "open", path: path, errno: errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StoreFailure(
                operation: "open", path: path, reason: "it is no regular file", kind: .other,
                cure: "Move it away.")
        }
        if status.st_mode & 0o077 != 0, fchmod(descriptor, 0o600) != 0 {
            throw StoreFailure(operation: "set the mode of", path: path, errno: errno)
        }
        if isNew { try syncDirectory(of: path) }
    }

    /// Makes the entries of a file's folder durable.
    static func syncDirectory(of path: String) throws(StoreFailure) {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.utf8.startIndex
        let directory = end == path.utf8.startIndex ? "/" : String(path[..<end])
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StoreFailure(operation: "open", path: directory, errno: errno)
        }
        defer { _ = close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw StoreFailure(operation: "synchronise", path: directory, errno: errno)
        }
    }
}
