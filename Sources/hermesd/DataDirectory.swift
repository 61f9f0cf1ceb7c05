import ConfiguredFiles
import Glibc
import PlainText
import SystemFiles

/// The data directory: mode 0700, locked while the process lives.
struct DataDirectory: ~Copyable {
    let path: String
    private let lock: FileLock

    /// Creates the folder if it is missing, and locks it.
    init(path: String) throws(DataFolder.Unusable) {
        if mkdir(path, 0o700) == 0 {
            try Self.synchronizeParent(of: path)
        } else if errno != EEXIST {
            throw DataFolder.Unusable(
                path, "cannot be made", errno: errno, cure: "Check its parent folder.")
        }
        try DataFolder.check(path, owner: geteuid())
        let lock: FileLock?
        do throws(SystemError) {
            lock = try FileLock.take("\(path)/lock", creating: true)
        } catch {
            throw DataFolder.Unusable(
                error.subject, "cannot be opened", errno: error.code,
                cure: "The folder must belong to the user that runs hermesd.")
        }
        guard let lock else {
            throw DataFolder.Unusable(
                "\(VisibleText.escaped(path)) is in use by another hermesd. Stop that one, or give "
                    + "this one a folder of its own.", isTransient: true)
        }
        self.path = path
        self.lock = lock
    }

    /// Syncs the parent folder, without which a power failure could lose a new folder.
    private static func synchronizeParent(of path: String) throws(DataFolder.Unusable) {
        do throws(SystemError) {
            try FileChange.synchronizeFolder("\(path)/..")
        } catch {
            let isOpen = error.call == "fsync"
            throw DataFolder.Unusable(
                error.subject, isOpen ? "cannot be synchronised" : "cannot be opened",
                errno: error.code, cure: isOpen ? "Check the disk." : "Check its permissions.")
        }
    }
}
