import Glibc

/// Sole owner of an open file; leaving scope closes it. Every failure names the path.
struct OpenFile: ~Copyable {
    let descriptor: CInt
    let path: String

    /// Opens without following this process into a child, and without waiting for a FIFO's peer.
    init(
        _ path: String, flags: CInt, mode: mode_t = 0o600, action: String = "open"
    ) throws(SystemFailure) {
        var result: CInt
        repeat {
            result = Glibc.open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode)
        } while result < 0 && errno == EINTR
        guard result >= 0 else { throw SystemFailure(action: action, path: path, errno: errno) }
        descriptor = result
        self.path = path
    }

    deinit { _ = Glibc.close(descriptor) }

    /// Owner, mode, size and kind of what is open.
    borrowing func status() throws(SystemFailure) -> stat {
        var result = stat()
        guard fstat(descriptor, &result) == 0 else { throw failure("examine") }
        return result
    }

    /// Everything up to the end, at most `maximumByteCount + 1` bytes, so that the caller can see
    /// that there is too much.
    borrowing func readAll(maximumByteCount: Int) throws(SystemFailure) -> [UInt8] {
        var contents: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while contents.count <= maximumByteCount {
            let wanted = min(chunk.count, maximumByteCount + 1 - contents.count)
            let count = read(descriptor, &chunk, wanted)
            if count == 0 { break }
            if count > 0 {
                contents += chunk[..<count]
            } else if errno != EINTR {
                throw failure("read")
            }
        }
        return contents
    }

    borrowing func writeAll(_ bytes: [UInt8]) throws(SystemFailure) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                write(descriptor, buffer.baseAddress.map { $0 + written }, buffer.count - written)
            }
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                throw failure("write")
            }
        }
    }

    /// Returns once contents and length are on the disk.
    borrowing func synchronize() throws(SystemFailure) {
        guard fsync(descriptor) == 0 else { throw failure("write to disk") }
    }

    /// Gives the file to that user and group unless it is theirs already.
    borrowing func setOwner(user: uid_t, group: gid_t) throws(SystemFailure) {
        let current = try status()
        if current.st_uid == user && current.st_gid == group { return }
        guard fchown(descriptor, user, group) == 0 else { throw failure("set the owner of") }
    }

    borrowing func setMode(_ mode: mode_t) throws(SystemFailure) {
        guard fchmod(descriptor, mode & 0o7777) == 0 else { throw failure("set the mode of") }
    }

    borrowing func failure(_ action: String) -> SystemFailure {
        SystemFailure(action: action, path: path, errno: errno)
    }
}

extension stat {
    var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }
}
