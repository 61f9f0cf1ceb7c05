import Glibc
import SystemFiles

/// Finds the path of the database file, and creates the file with the mode that the data directory
/// demands.
enum DatabaseFile {
    static let name = "hermes.sqlite"

    /// The path of the file in a folder. Symbolic links of the folder are resolved, because SQLite,
    /// told to follow none, would refuse those as well.
    static func path(in directory: String) throws(StoreFailure) -> String {
        guard let resolved = realpath(directory, nil) else {
            throw StoreFailure(operation: "open", path: directory, errno: errno)
        }
        defer { free(resolved) }
        let folder = String(cString: resolved)
        return folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }

    /// Creates the file with mode 0600 if it is missing. Removes the access of other users to a
    /// file that exists.
    ///
    /// SQLite gives its `-wal` and `-shm` files the mode of the database file. Must be called
    /// before the process has the database open: closing the descriptor here would end the locks of
    /// an open connection, since POSIX record locks belong to the process.
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

    /// Synchronises the folder of a file, so that its entries are durable.
    static func syncDirectory(of path: String) throws(StoreFailure) {
        do throws(SystemError) {
            try FileChange.synchronizeFolder(FilePath.folder(of: path))
        } catch {
            throw StoreFailure(error)
        }
    }
}
