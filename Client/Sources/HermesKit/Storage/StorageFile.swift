import HermesClientCore
import NIOConcurrencyHelpers

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A lock on a client's file: nobody else opens the file before ``release()``, and nothing is
/// written to it afterwards.
final class StorageLock: Sendable {
    private let descriptor: NIOLockedValueBox<Descriptor?>

    fileprivate init(_ descriptor: Descriptor) { self.descriptor = NIOLockedValueBox(descriptor) }

    /// Another client may open the file from now on; may be called on any thread.
    func release() {
        descriptor.withLockedValue { descriptor in
            // A program that this one is just starting has the descriptor too, up to its exec: only
            // unlocking ends the lock at once.
            if let descriptor { flock(descriptor.number, LOCK_UN) }
            descriptor = nil
        }
    }

    deinit { release() }

    var isReleased: Bool { descriptor.withLockedValue { $0 == nil } }

    /// Does nothing once the lock is released: the client is gone, and nothing of it is kept.
    fileprivate func whileHeld(_ write: () throws(StorageError) -> Void) throws(StorageError) {
        let result = descriptor.withLockedValue { descriptor -> Result<Void, StorageError> in
            guard descriptor != nil else { return .success(()) }
            do throws(StorageError) {
                return .success(try write())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }
}

/// The client's log as a file, locked against a second client.
///
/// The lock is on a file of its own beside it, `NAME.lock`, because compaction puts another file in
/// the log's place. A frame is there after a kill of the program as soon as `append` has returned;
/// after a loss of power only if `isSynchronized` was chosen.
final class StorageFile: ClientStorage {
    /// Beyond this a file is none of ours.
    static let mostBytes = 256 << 20

    /// A part of a file that could not be read.
    struct Damage: Hashable, Sendable {
        var bytes: Int
        /// The file as it was found; `nil` if it could not be kept.
        var setAside: String?
    }

    private let path: String
    private let isSynchronized: Bool
    /// What was found at opening.
    private(set) var damage: Damage?
    let lock: StorageLock
    private var log: Descriptor
    /// Bytes of the file, all of them sound.
    private var count: Int

    /// Opens or creates the file and reads it. What a kill left behind the last whole frame is cut
    /// off; a file that is damaged is kept beside as `PATH.damaged`, and what can be read of it goes
    /// on.
    static func open(
        _ path: String, isSynchronized: Bool
    ) throws(StorageError) -> (storage: StorageFile, recovery: ClientLog.Recovery) {
        let lock = try Descriptor.open(path + ".lock", O_RDWR | O_CREAT)
        guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else {
                throw StorageError("cannot lock \(path).lock", errno)
            }
            throw StorageError(
                reason: "\(path) is in use by another client of this or another program; "
                    + "stop that one and let it go, or give each client a file of its own")
        }
        let log = try Descriptor.open(path, O_RDWR | O_CREAT | O_APPEND)
        let bytes = try log.readAll(path, most: mostBytes)
        let recovery: ClientLog.Recovery
        do {
            recovery = try ClientLog.recover(bytes)
        } catch {
            throw StorageError(
                reason: "\(path) is not a client's file, or is one of a later version; "
                    + "move it away, and a new session begins")
        }
        if recovery.droppedBytes > 0, ftruncate(log.number, off_t(recovery.soundBytes)) != 0 {
            throw StorageError("cannot cut \(path) to its sound part", errno)
        }
        let storage = StorageFile(
            path: path, isSynchronized: isSynchronized, lock: StorageLock(lock), log: log,
            count: recovery.soundBytes)
        if recovery.damagedBytes > 0 { storage.setAside(bytes, recovery) }
        // The name of a new file is lost with the power too, unless its directory is flushed.
        if isSynchronized { try Descriptor.synchronizeDirectory(of: path) }
        return (storage, recovery)
    }

    private func setAside(_ bytes: [UInt8], _ recovery: ClientLog.Recovery) {
        damage = Damage(bytes: recovery.damagedBytes)
        do throws(StorageError) {
            let name = path + ".damaged"
            let file = try Descriptor.open(name, O_RDWR | O_CREAT | O_TRUNC)
            try file.write(bytes, name)
            damage?.setAside = name
            try replace(with: ClientLog.file(recovery.state))
        } catch {
            // The damaged file stays in use: what is appended is found again behind the damage.
        }
    }

    private init(
        path: String, isSynchronized: Bool, lock: StorageLock, log: Descriptor, count: Int
    ) {
        self.path = path
        self.isSynchronized = isSynchronized
        self.lock = lock
        self.log = log
        self.count = count
    }

    var isReleased: Bool { lock.isReleased }

    func append(_ frame: [UInt8]) throws(StorageError) {
        let bytes = count == 0 ? ClientLog.header + frame : frame
        try lock.whileHeld { () throws(StorageError) in
            do throws(StorageError) {
                try log.write(bytes, path)
                if isSynchronized { try log.synchronize(path) }
            } catch {
                // A part of the frame would hide all that follows it.
                _ = ftruncate(log.number, off_t(count))
                throw error
            }
            count += bytes.count
        }
    }

    func replace(with file: [UInt8]) throws(StorageError) {
        try lock.whileHeld { () throws(StorageError) in try replaceHeld(with: file) }
    }

    private func replaceHeld(with file: [UInt8]) throws(StorageError) {
        let next = path + ".new"
        let descriptor = try Descriptor.open(next, O_RDWR | O_CREAT | O_TRUNC | O_APPEND)
        do throws(StorageError) {
            try descriptor.write(file, next)
            // Without it a loss of power could leave an empty file under the old name.
            try descriptor.synchronize(next)
        } catch {
            // On a full disk the part would take the room that is to come.
            unlink(next)
            throw error
        }
        guard rename(next, path) == 0 else { throw StorageError("cannot replace \(path)", errno) }
        if isSynchronized { try Descriptor.synchronizeDirectory(of: path) }
        log = descriptor
        count = file.count
    }
}

/// Counts the flushes of directories, for the tests.
let synchronizedDirectories = NIOLockedValueBox(0)

/// An open file, closed with the last reference.
private final class Descriptor: Sendable {
    let number: Int32

    private init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    static func open(_ path: String, _ flags: Int32) throws(StorageError) -> Descriptor {
        // Readable for its owner alone: the file holds messages.
        let number = system { openFile(path, flags | O_CLOEXEC, 0o600) }
        guard number >= 0 else { throw StorageError("cannot open \(path)", errno) }
        return Descriptor(number)
    }

    func readAll(_ path: String, most: Int) throws(StorageError) -> [UInt8] {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw StorageError("cannot read \(path)", errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= most else {
            throw StorageError(
                reason: "\(path) is no file, or larger than a client's file can be; "
                    + "give the client another path")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < bytes.count {
            let offset = filled
            let got = bytes.withUnsafeMutableBytes { buffer in
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[offset...])
                return system { pread(number, rest.baseAddress, rest.count, off_t(offset)) }
            }
            guard got > 0 else { throw StorageError("cannot read \(path)", errno) }
            filled += got
        }
        return bytes
    }

    func write(_ bytes: [UInt8], _ path: String) throws(StorageError) {
        var written = 0
        while written < bytes.count {
            let offset = written
            let got = bytes.withUnsafeBytes { buffer in
                system { writeBytes(number, UnsafeRawBufferPointer(rebasing: buffer[offset...])) }
            }
            guard got > 0 else { throw StorageError("cannot write \(path)", errno) }
            written += got
        }
    }

    /// Makes the names in the file's directory survive a loss of power.
    static func synchronizeDirectory(of path: String) throws(StorageError) {
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let directory = try open(parent, O_RDONLY | O_DIRECTORY)
        let result = system { fsync(directory.number) }
        guard result == 0 else { throw StorageError("cannot flush \(parent)", errno) }
        synchronizedDirectories.withLockedValue { $0 += 1 }
    }

    func synchronize(_ path: String) throws(StorageError) {
        #if canImport(Darwin)
            // fsync leaves the data in the device's cache, where a loss of power finds it.
            let result = system { fcntl(number, F_FULLFSYNC) }
        #else
            let result = system { fdatasync(number) }
        #endif
        guard result == 0 else { throw StorageError("cannot flush \(path)", errno) }
    }
}

extension StorageError {
    fileprivate init(_ deed: String, _ code: Int32) {
        reason = "\(deed): \(String(cString: strerror(code)))"
    }
}

/// Calls again what a signal has interrupted.
private func system<Number: BinaryInteger>(_ call: () -> Number) -> Number {
    while true {
        let result = call()
        if result != -1 || errno != EINTR { return result }
    }
}

// The functions by names that no method of this file hides.
private func openFile(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    open(path, flags, mode)
}

private func writeBytes(_ number: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(number, bytes.baseAddress, bytes.count)
}
