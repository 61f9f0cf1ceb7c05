import Glibc
import SystemFiles

/// An open journal file of fixed size.
///
/// The file keeps its blocks: it is filled with zeros before it gets its name, so that later writes
/// inside it need neither space nor metadata. (File systems that never overwrite in place, such as
/// btrfs, may need space all the same.)
public final class SegmentFile: Sendable {
    private let owned: OwnedDescriptor
    let path: String
    /// Size in bytes.
    let capacity: Int

    var descriptor: CInt { owned.rawValue }

    private init(owning owned: consuming OwnedDescriptor, path: String, capacity: Int) {
        self.owned = owned
        self.path = path
        self.capacity = capacity
    }

    /// Opens an existing file.
    static func open(_ path: String) throws(StoreFailure) -> SegmentFile {
        let owned = try openDescriptor(path, flags: O_RDWR, operation: "open")
        var status = stat()
        guard fstat(owned.rawValue, &status) == 0 else {
            throw StoreFailure(operation: "examine", path: path, errno: errno)
        }
        guard FileStatus(status).isRegularFile else {
            throw StoreFailure(
                operation: "open", path: path, reason: "it is no regular file", kind: .other,
                cure: "Move it away: a journal consists of regular files.")
        }
        return SegmentFile(owning: owned, path: path, capacity: Int(status.st_size))
    }

    /// Creates a file of zeros. It is durable, and its name appears only once it is complete.
    ///
    /// - Parameters:
    ///   - path: a name that is free.
    ///   - capacity: size in bytes, a multiple of the block size.
    ///   - directory: the directory of `path`.
    /// - Returns: the open file.
    /// - Throws: the failure of a call; the file does not exist then.
    static func make(
        _ path: String, capacity: Int, in directory: JournalDirectory
    ) throws(StoreFailure) -> SegmentFile {
        let unfinished = path + JournalDirectory.unfinishedSuffix
        _ = unlink(unfinished)
        let owned = try openDescriptor(
            unfinished, flags: O_RDWR | O_CREAT | O_EXCL, operation: "create")
        let file = SegmentFile(owning: owned, path: path, capacity: capacity)
        do throws(StoreFailure) {
            try file.fillWithZeros()
            guard rename(unfinished, path) == 0 else {
                throw StoreFailure(operation: "name", path: path, errno: errno)
            }
            try directory.synchronize()
        } catch {
            _ = unlink(unfinished)
            _ = unlink(path)
            throw error
        }
        return file
    }

    private static func openDescriptor(
        _ path: String, flags: CInt, operation: String
    ) throws(StoreFailure) -> OwnedDescriptor {
        do throws(SystemError) {
            return try OwnedDescriptor(opening: path, flags: flags | O_NOFOLLOW | O_NONBLOCK)
        } catch {
            throw StoreFailure(error, operation: operation)
        }
    }

    private func fillWithZeros() throws(StoreFailure) {
        // Asks for the whole space at once, so that a full disk is found before the file is filled.
        let code = posix_fallocate(descriptor, 0, off_t(capacity))
        guard code != ENOSPC, code != EDQUOT else {
            throw StoreFailure(
                operation: "make room for", path: path,
                reason: code == EDQUOT
                    ? "the quota is used up (EDQUOT)" : "the disk is full (ENOSPC)", code: code,
                kind: .outOfSpace,
                cure: "Free at least \((capacity + 1_048_575) >> 20) MiB on this file system.")
        }
        guard code == 0 || code == EINTR else {
            throw StoreFailure(operation: "make room for", path: path, errno: code)
        }
        let zeros = [UInt8](repeating: 0, count: min(capacity, 1 << 20))
        var offset = 0
        while offset < capacity {
            let count = min(zeros.count, capacity - offset)
            let failure = zeros.withUnsafeBytes { bytes in
                write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
            }
            if let failure { throw failure }
            offset += count
        }
        guard fsync(descriptor) == 0 else { throw failure("synchronise") }
    }

    /// Writes bytes. Returns the failure, after which any part may have been written; `nil` for
    /// success.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> StoreFailure? {
        var runs = [iovec(bytes)]
        return write(&runs, at: offset)
    }

    /// Writes runs of bytes one behind the other, in one call if possible. Uses `runs` up.
    ///
    /// - Returns: the failure, after which any part may have been written; `nil` for success.
    func write(_ runs: inout [iovec], at start: Int) -> StoreFailure? {
        runs.withUnsafeMutableBufferPointer { runs in
            var offset = start
            var first = 0
            while true {
                while first < runs.count && runs[first].iov_len == 0 { first += 1 }
                guard first < runs.count, let base = runs.baseAddress else { return nil }
                // The kernel takes at most 1,024 runs in one call.
                let (count, code) = retrying {
                    pwritev(
                        descriptor, base + first, CInt(min(runs.count - first, 1_024)),
                        off_t(offset))
                }
                guard count > 0 else {
                    return StoreFailure(
                        operation: "write", path: path, errno: count < 0 ? code : EIO)
                }
                offset += count
                var written = count
                while written > 0 {
                    let part = min(written, runs[first].iov_len)
                    runs[first].iov_base = runs[first].iov_base.map { $0 + part }
                    runs[first].iov_len -= part
                    written -= part
                    if runs[first].iov_len == 0 { first += 1 }
                }
            }
        }
    }

    /// Returns once everything written is on the disk.
    ///
    /// Must not be called again on this file after a failure: the kernel may have dropped pages
    /// that it could not write, and a second call would succeed without having written them.
    func synchronize() throws(StoreFailure) {
        guard fdatasync(descriptor) == 0 else { throw failure("synchronise") }
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes.
    func read(at start: Int, into buffer: UnsafeMutableRawBufferPointer) throws(StoreFailure)
        -> Int
    {
        var filled = 0
        while filled < buffer.count {
            let (count, code) = retrying {
                pread(
                    descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled,
                    off_t(start + filled))
            }
            guard count >= 0 else {
                throw StoreFailure(operation: "read", path: path, errno: code)
            }
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Deletes a name; readers that hold the file can still read it. If the disk fails and the file
    /// stays, the next start finds it and uses it again.
    static func remove(_ path: String) { _ = unlink(path) }

    private func failure(_ operation: String) -> StoreFailure {
        StoreFailure(operation: operation, path: path, errno: errno)
    }
}

extension iovec {
    /// Refers to these bytes, which the caller keeps alive. The kernel only reads them.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    }
}
