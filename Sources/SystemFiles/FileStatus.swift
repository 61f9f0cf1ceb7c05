import Glibc

/// The kind, owner, mode and size of a file, as stat(2) tells them.
package struct FileStatus: Sendable {
    private let bits: mode_t
    /// The user that owns the file.
    package let owner: uid_t
    package let group: gid_t
    /// In bytes.
    package let size: Int

    package init(_ status: stat) {
        bits = status.st_mode
        owner = status.st_uid
        group = status.st_gid
        size = Int(status.st_size)
    }

    /// Looks at the file behind all links; `nil` leaves the reason in `errno`.
    package init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Looks at the path itself, which may be a symbolic link; `nil` leaves the reason in `errno`.
    package init?(ofLink path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The permission bits, with those of set-user-ID and its like.
    package var mode: mode_t { bits & 0o7777 }
    package var isRegularFile: Bool { bits & S_IFMT == S_IFREG }
    package var isFolder: Bool { bits & S_IFMT == S_IFDIR }
    package var isLink: Bool { bits & S_IFMT == S_IFLNK }
    package var isSocket: Bool { bits & S_IFMT == S_IFSOCK }

    /// True if the file belongs to this process's user, or to root, who may do everything anyway.
    package var isOurs: Bool { owner == 0 || owner == geteuid() }
}
