import Glibc

/// What changes whenever a file does: two equal stamps mean that there is nothing new to read.
///
/// Take it before reading, so that a change in between is seen at the next look. Files that are
/// replaced by renaming get another inode, whatever their time says.
package struct FileStamp: Equatable, Sendable {
    private var inode: UInt64
    private var seconds: Int
    private var nanoseconds: Int
    private var size: Int

    /// `nil` when there is no such file, or it cannot be looked at.
    package init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
        size = Int(status.st_size)
    }
}
