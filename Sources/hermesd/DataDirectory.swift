import ConfiguredFiles
import Glibc
import PlainText

/// The data directory: mode 0700, locked while the process lives.
struct DataDirectory: ~Copyable {
    let path: String
    private let lock: CInt

    /// Creates the folder if it is missing, and locks it.
    init(path: String) throws(DataFolder.Unusable) {
        if mkdir(path, 0o700) == 0 {
            try Self.synchronizeParent(of: path)
        } else if errno != EEXIST {
            throw DataFolder.Unusable(
                path, "cannot be made", errno: errno, cure: "Check its parent folder.")
        }
        try DataFolder.check(path, owner: geteuid())
        let descriptor = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw DataFolder.Unusable(
                "\(path)/lock", "cannot be opened", errno: errno,
                cure: "The folder must belong to the user that runs hermesd.")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            _ = close(descriptor)
            throw DataFolder.Unusable(
                "\(VisibleText.escaped(path)) is in use by another hermesd. Stop that one, or give "
                    + "this one a folder of its own.", isTransient: true)
        }
        self.path = path
        lock = descriptor
    }

    deinit { _ = close(lock) }

    /// Syncs the parent folder, without which a power failure could lose a new folder.
    private static func synchronizeParent(of path: String) throws(DataFolder.Unusable) {
        let parent = open("\(path)/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else {
            throw DataFolder.Unusable(
                "\(path)/..", "cannot be opened", errno: errno, cure: "Check its permissions.")
        }
        defer { _ = close(parent) }
        guard fsync(parent) == 0 else {
            throw DataFolder.Unusable(
                "\(path)/..", "cannot be synchronised", errno: errno, cure: "Check the disk.")
        }
    }
}
