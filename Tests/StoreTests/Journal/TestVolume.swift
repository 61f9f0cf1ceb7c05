import Glibc
import Testing

/// A small file system in memory, unmounted when it leaves scope.
struct TestVolume: ~Copyable {
    /// True if this process may mount.
    static let isPermitted: Bool = {
        guard geteuid() == 0, let volume = try? TestVolume(bytes: 65_536) else { return false }
        return !volume.path.isEmpty
    }()

    let path: String
    private var fillPath: String { path + "/fill" }

    init(bytes: Int) throws {
        var template = Array("/tmp/hermes-volume.XXXXXX".utf8CString)
        let path = String(cString: try #require(mkdtemp(&template)))
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            let code = errno
            rmdir(path)
            throw MountFailure(code: code)
        }
        self.path = path
    }

    deinit {
        // Open files keep the file system alive, but not its name.
        _ = umount2(path, CInt(MNT_DETACH))
        _ = rmdir(path)
    }

    /// Takes all free space.
    func fill() throws {
        let file = open(fillPath, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        let page = [UInt8](repeating: 1, count: 4_096)
        while write(file, page, page.count) > 0 {}
        try #require(errno == ENOSPC)
    }

    /// Frees the space taken by ``fill()``.
    func empty() throws { try #require(unlink(fillPath) == 0) }

    func makeReadOnly() throws { try remount(UInt(MS_REMOUNT | MS_RDONLY)) }

    func makeWritable() throws { try remount(UInt(MS_REMOUNT)) }

    private func remount(_ flags: UInt) throws {
        guard mount("tmpfs", path, "tmpfs", flags, nil) == 0 else {
            throw MountFailure(code: errno)
        }
    }

    private struct MountFailure: Error {
        let code: CInt
    }
}
