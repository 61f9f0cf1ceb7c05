import Glibc

/// The folder that belongs to one running broker: mode 0700, locked for as long as the process lives.
struct DataDirectory: ~Copyable {
    /// Why the folder cannot be used.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    let path: String
    private let lock: CInt

    /// Makes the folder when it is missing, and takes its lock.
    init(path: String) throws(Unusable) {
        if mkdir(path, 0o700) == 0 {
            try Self.synchronizeParent(of: path)
        } else if errno != EEXIST {
            throw Self.unusable(path, "cannot be made", errno, "Check its parent folder.")
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw Self.unusable(path, "cannot be opened", errno, "Check its permissions.")
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw Unusable(
                description:
                    "data_directory: \(path) is not a folder. Move it away or name another.")
        }
        // Root may enter any, and would leave files there that their owner cannot open.
        guard status.st_uid == geteuid() else {
            throw Unusable(
                description: "data_directory: \(path) belongs to the user with number "
                    + "\(status.st_uid), and hermesd runs as number \(geteuid()). Start it as that "
                    + "user, or run: chown -R \(geteuid()) \(path)")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw Unusable(
                description: "data_directory: \(path) can be entered by others (mode "
                    + "\(String(status.st_mode & 0o777, radix: 8))). Run: chmod 700 \(path)")
        }
        let descriptor = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw Self.unusable(
                "\(path)/lock", "cannot be opened", errno,
                "The folder must belong to the user that runs hermesd.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            _ = close(descriptor)
            throw Unusable(
                description: "data_directory: \(path) is in use by another hermesd. "
                    + "Stop that one, or give this one a folder of its own.")
        }
        self.path = path
        lock = descriptor
    }

    deinit { _ = close(lock) }

    /// What is stored in a folder is only as safe as the folder's name.
    private static func synchronizeParent(of path: String) throws(Unusable) {
        let parent = open("\(path)/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else {
            throw unusable("\(path)/..", "cannot be opened", errno, "Check its permissions.")
        }
        defer { _ = close(parent) }
        guard fsync(parent) == 0 else {
            throw unusable("\(path)/..", "cannot be synchronised", errno, "Check the disk.")
        }
    }

    private static func unusable(
        _ path: String, _ what: String, _ code: CInt, _ cure: String
    ) -> Unusable {
        Unusable(
            description:
                "data_directory: \(path) \(what): \(String(cString: strerror(code))). \(cure)")
    }
}
