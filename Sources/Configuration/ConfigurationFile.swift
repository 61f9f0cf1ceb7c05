import Glibc

/// Reads a configuration file of bounded size.
enum ConfigurationFile {
    /// A file with every key and its comments has about 5 KB.
    static let maximumBytes = 1 << 20

    /// Reads the file's bytes.
    ///
    /// - Throws: `RefusedValue` when the file cannot be opened or read, is not a regular file, or
    ///   is too large.
    static func read(_ path: String) throws(RefusedValue) -> [UInt8] {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw RefusedValue(
                complaint: "the path of the configuration file is empty or holds a NUL",
                cure: "Give --config the path of a YAML file.")
        }
        var link = stat()
        let isLink = lstat(path, &link) == 0 && link.st_mode & S_IFMT == S_IFLNK
        // Without O_NONBLOCK, opening a FIFO that has no writer would block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw cannot("open", errno) }
        defer { _ = close(descriptor) }

        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw cannot("open", errno) }
        if isLink { try checkLink(ownedBy: [link.st_uid, status.st_uid]) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            throw RefusedValue(
                complaint: isFolder ? "this is a folder" : "this is not a regular file",
                cure: "Give --config the path of a YAML file.")
        }
        return try readToEnd(descriptor)
    }

    /// Rejects a symbolic link that another user owns: that user could replace the configuration.
    private static func checkLink(ownedBy owners: [uid_t]) throws(RefusedValue) {
        guard let stranger = owners.first(where: { $0 != 0 && $0 != geteuid() }) else { return }
        throw RefusedValue(
            complaint:
                "this is a symbolic link, and it or what it leads to belongs to user \(stranger)",
            cure:
                "Make a link and a file that belong to the broker's user or to root, or name the file itself."
        )
    }

    /// Limits the bytes read, because a file can grow after `fstat`.
    private static func readToEnd(_ descriptor: CInt) throws(RefusedValue) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= maximumBytes {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes.append(contentsOf: chunk[..<count])
            } else if errno != EINTR {
                throw cannot("read", errno)
            }
        }
        throw RefusedValue(
            complaint: "the file is larger than \(Quantity.size(maximumBytes))",
            cure: "Give --config the path of a YAML file.")
    }

    private static func cannot(_ action: String, _ code: CInt) -> RefusedValue {
        let (reason, cure) =
            switch code {
            case ENOENT:
                (
                    "no such file (ENOENT)",
                    "Correct the path, or write the file; a broker without --config runs with the built-in settings."
                )
            case EACCES:
                (
                    "permission denied (EACCES)",
                    "Let the user that runs the broker read the file and enter its folders."
                )
            case ENOTDIR:
                ("a part of the path is not a folder (ENOTDIR)", "Correct the path.")
            case ELOOP:
                ("too many symbolic links (ELOOP)", "Correct the links in the path.")
            case EMFILE, ENFILE:
                (
                    "no descriptor is free (error \(code))",
                    "Raise the limit of open files (ulimit -n)."
                )
            default:
                ("system error \(code)", "Look the number up with `errno \(code)`.")
            }
        return RefusedValue(complaint: "cannot \(action) the file: \(reason)", cure: cure)
    }
}
