import Glibc

/// A mark of a file's state: two equal stamps mean that there is nothing new to read.
///
/// Take it before reading, so that a change in between is seen at the next look. A file that is
/// replaced by renaming gets another inode, whatever its time says. Owner and mode count as well as
/// contents: the time of change moves with all of them, and nobody can set it back.
package struct FileStamp: Equatable, Sendable {
    private var inode: UInt64
    private var modified: Time
    private var changed: Time
    private var size: Int

    private struct Time: Equatable, Sendable {
        var seconds: Int
        var nanoseconds: Int

        init(_ time: timespec) {
            seconds = time.tv_sec
            nanoseconds = time.tv_nsec
        }
    }

    /// `nil` when there is no such file, or it cannot be looked at.
    package init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        modified = Time(status.st_mtim)
        changed = Time(status.st_ctim)
        size = Int(status.st_size)
    }
}
