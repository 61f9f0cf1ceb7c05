import Glibc
import SystemFiles

/// A file that only takes up space. It is given up when other programs have filled the disk, so
/// that the broker can start, and move what makes its files smaller.
///
/// What ``DiskRoom`` keeps free is taken by whoever writes next; this is not.
struct Ballast: Sendable {
    let path: String
    let bytes: Int

    init(in directory: String, options: DurableStoreOptions) {
        path = "\(directory)/journal/room"
        bytes = min(4 << 20, options.journal.segmentBytes / 4)
    }

    var exists: Bool { access(path, F_OK) == 0 }

    /// Gives the space up.
    func release() { _ = unlink(path) }

    /// Gives the space up if the file system has less.
    func releaseIfFull(_ directory: String) {
        var status = statvfs()
        guard statvfs(directory, &status) == 0,
            UInt64(status.f_bavail) &* UInt64(status.f_frsize) < UInt64(bytes)
        else { return }
        release()
    }

    /// Takes the space; without effect if there is none.
    func make() {
        guard
            let file = try? OwnedDescriptor(
                opening: path, flags: O_WRONLY | O_CREAT | O_NOFOLLOW, mode: 0o600)
        else { return }
        // Without the whole space the file is of no use.
        if posix_fallocate(file.rawValue, 0, off_t(bytes)) != 0 { release() }
    }
}
