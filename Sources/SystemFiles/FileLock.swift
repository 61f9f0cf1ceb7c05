import Glibc

/// An exclusive flock(2) on a lock file; it ends with the value.
///
/// A file is locked by another file beside it: a change replaces the file, and a waiting process
/// would get the lock of the replaced one. The lock file is never deleted, for the same reason.
package struct FileLock: ~Copyable {
    /// The reason for which there is no lock, or no change.
    package enum Failure: Error {
        /// Another process kept the lock for as long as we were ready to wait.
        case busy(lockPath: String)
        case system(SystemError)
    }

    private let file: OpenFile

    private init(holding file: consuming OpenFile) {
        self.file = file
    }

    /// Takes the lock if it is free; `nil` if another process has it.
    package static func take(_ path: String, creating: Bool) throws(SystemError) -> FileLock? {
        let file = try OpenFile(path, flags: O_RDWR | O_NOFOLLOW | (creating ? O_CREAT : 0))
        return try lock(file) ? FileLock(holding: file) : nil
    }

    /// Waits until the lock is free, for at most `timeout`, looking every 10 ms.
    package static func acquire(_ path: String, timeout: Duration) throws(Failure) -> FileLock {
        let file: OpenFile
        do throws(SystemError) {
            file = try open(path)
        } catch {
            throw .system(error)
        }
        let deadline = ContinuousClock.now + timeout
        while true {
            do throws(SystemError) {
                if try lock(file) { break }
            } catch {
                throw .system(error)
            }
            if ContinuousClock.now >= deadline { throw .busy(lockPath: path) }
            usleep(10_000)
        }
        return FileLock(holding: file)
    }

    private static func open(_ path: String) throws(SystemError) -> OpenFile {
        let file = try OpenFile(
            path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, call: "open the lock file")
        try file.adoptFolderOwner()
        return file
    }

    /// Runs `body`, then lets the next process have the lock.
    package borrowing func whileHeld<Result, Refusal: Error>(
        _ body: () throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        defer { _ = flock(file.descriptor, LOCK_UN) }
        return try body()
    }

    /// False if another process has the lock.
    private static func lock(_ file: borrowing OpenFile) throws(SystemError) -> Bool {
        let descriptor = file.descriptor
        let (result, code) = retrying { Int(flock(descriptor, LOCK_EX | LOCK_NB)) }
        if result == 0 { return true }
        guard code == EWOULDBLOCK else {
            throw SystemError(call: "flock", subject: file.path, code: code)
        }
        return false
    }
}
