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

    /// True when the group is one that this process was given, and the process is not root's, who
    /// needs no group. So are the volumes of a pod in Kubernetes with `fsGroup`: what is on them
    /// belongs to that group, and is opened to it at every mount.
    package var isOfOwnGroup: Bool {
        guard geteuid() != 0 else { return false }
        if group == getegid() { return true }
        var groups = [gid_t](repeating: 0, count: max(Int(getgroups(0, nil)), 1))
        let count = getgroups(CInt(groups.count), &groups)
        return count > 0 && groups[..<Int(count)].contains(group)
    }

    /// The permission bits of all who are neither the owner nor of a group of this process.
    package var modeOfOthers: mode_t { mode & (isOfOwnGroup ? 0o007 : 0o077) }
}
