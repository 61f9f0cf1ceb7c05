import Glibc

/// An open file that knows its path, so that every failure names it; leaving scope closes it.
package struct OpenFile: ~Copyable {
    package let path: String
    private let owned: OwnedDescriptor

    package var descriptor: CInt { owned.rawValue }

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - path: of the file.
    ///   - flags: those of open(2); the file is never inherited, and never our terminal.
    ///   - mode: of a file that is created.
    ///   - waits: for the other end of a FIFO. Otherwise one is opened at once.
    ///   - call: the attempt, for the error.
    /// - Throws: the failure of open(2).
    package init(
        _ path: String, flags: CInt = O_RDONLY, mode: mode_t = 0o600, waits: Bool = false,
        call: String = "open"
    ) throws(SystemError) {
        owned = try OwnedDescriptor(
            opening: path, flags: waits ? flags : flags | O_NONBLOCK, mode: mode, call: call)
        self.path = path
    }

    /// Owner, mode, size and kind.
    package borrowing func status() throws(SystemError) -> FileStatus {
        var result = stat()
        guard fstat(descriptor, &result) == 0 else { throw error("fstat") }
        return FileStatus(result)
    }

    /// Everything up to the end, or the first `maximumByteCount + 1` bytes, so that the caller sees
    /// that there is too much.
    package borrowing func readAll(
        maximumByteCount: Int, isSecret: Bool = false
    ) throws(SystemError) -> [UInt8] {
        try Self.readAll(
            descriptor, name: path, maximumByteCount: maximumByteCount, isSecret: isSecret)
    }

    package borrowing func writeAll(_ bytes: [UInt8]) throws(SystemError) {
        try Self.writeAll(bytes, to: descriptor, name: path)
    }

    /// Returns once contents and length are on the disk.
    package borrowing func synchronize() throws(SystemError) {
        guard fsync(descriptor) == 0 else { throw error("fsync") }
    }

    /// Gives the file to that user and group unless it is theirs already.
    package borrowing func setOwner(user: uid_t, group: gid_t) throws(SystemError) {
        let current = try status()
        if current.owner == user && current.group == group { return }
        guard fchown(descriptor, user, group) == 0 else { throw error("fchown") }
    }

    package borrowing func setMode(_ mode: mode_t) throws(SystemError) {
        guard fchmod(descriptor, mode) == 0 else { throw error("fchmod") }
    }

    /// Gives a file that root created in another user's folder to that user: a broker that runs as
    /// that user must be able to read it. For any other process it does nothing.
    package borrowing func adoptFolderOwner() throws(SystemError) {
        guard geteuid() == 0 else { return }
        let folder = try OpenFile(FilePath.folder(of: path), flags: O_RDONLY | O_DIRECTORY)
        let status = try folder.status()
        try setOwner(user: status.owner, group: status.group)
    }

    /// The call that has just failed.
    package borrowing func error(_ call: String) -> SystemError {
        SystemError(call: call, subject: path, code: errno)
    }
}

// MARK: Descriptors that this process was given

extension OpenFile {
    /// Reads from a descriptor that stays open.
    ///
    /// - Parameters:
    ///   - descriptor: to read from.
    ///   - name: for the error.
    ///   - maximumByteCount: at most one byte more is read, so that the caller sees that there is
    ///     too much.
    ///   - isSecret: leaves no copy of the bytes behind. The caller erases the array.
    /// - Returns: the bytes.
    /// - Throws: the failure of read(2).
    package static func readAll(
        _ descriptor: CInt, name: String, maximumByteCount: Int, isSecret: Bool = false
    ) throws(SystemError) -> [UInt8] {
        var contents: [UInt8] = []
        // An array that grows moves, and would leave bytes behind.
        if isSecret { contents.reserveCapacity(maximumByteCount + 1) }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        defer { if isSecret { chunk.erase() } }
        while contents.count <= maximumByteCount {
            let wanted = min(chunk.count, maximumByteCount + 1 - contents.count)
            let (count, code) = retrying(mayBeClosed: true) { read(descriptor, &chunk, wanted) }
            guard count >= 0 else {
                if isSecret { contents.erase() }
                throw SystemError(call: "read", subject: name, code: code)
            }
            if count == 0 { break }
            contents += chunk[..<count]
        }
        return contents
    }

    /// Writes all bytes to a descriptor that stays open; `name` is for the error.
    /// Reads what comes next, up to 64 KiB; empty at the end.
    ///
    /// - Throws: ``SystemError`` when reading fails.
    package static func readPart(
        _ descriptor: CInt, name: @autoclosure () -> String
    ) throws(SystemError) -> [UInt8] {
        var part = [UInt8](repeating: 0, count: 65_536)
        let (count, code) = retrying(mayBeClosed: true) { read(descriptor, &part, part.count) }
        guard count >= 0 else { throw SystemError(call: "read", subject: name(), code: code) }
        part.removeLast(part.count - count)
        return part
    }

    package static func writeAll(
        _ bytes: [UInt8], to descriptor: CInt, name: String
    ) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let (count, code) = bytes.withUnsafeBytes { buffer in
                let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
                return retrying(mayBeClosed: true) {
                    write(descriptor, rest.baseAddress, rest.count)
                }
            }
            guard count >= 0 else { throw SystemError(call: "write", subject: name, code: code) }
            written += count
        }
    }
}

extension [UInt8] {
    /// Overwrites secret bytes with zeros, which no optimisation takes away.
    package mutating func erase() {
        withUnsafeMutableBytes { bytes in
            if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) }
        }
    }
}
