import Glibc

/// The right to change one file, kept by an exclusive flock(2) on a lock file beside it.
///
/// The lock is not on the file itself, because saving replaces that file and a waiting process
/// would then hold the lock of the one thrown away. The lock file stays: to delete it would open
/// the same race.
struct FileLock: ~Copyable {
    /// Why there is no lock, or no change.
    enum Failure: Error {
        /// Somebody else kept the lock for as long as we were ready to wait.
        case busy(lockPath: String)
        case system(SystemFailure)
    }

    private let file: OpenFile

    private init(holding file: consuming OpenFile) {
        self.file = file
    }

    /// Waits until the lock is free, for at most `timeout`, looking every 10 ms. The lock ends
    /// with the value.
    static func acquire(
        path: String, timeout: Duration
    ) throws(Failure) -> FileLock {
        let file: OpenFile
        do throws(SystemFailure) {
            file = try open(path)
        } catch {
            throw .system(error)
        }
        let deadline = ContinuousClock.now + timeout
        while flock(file.descriptor, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            guard code == EWOULDBLOCK else { throw .system(file.failure("lock")) }
            if ContinuousClock.now >= deadline { throw .busy(lockPath: path) }
            usleep(10_000)
        }
        return FileLock(holding: file)
    }

    /// Runs `body`, then lets the next one have the lock.
    borrowing func whileHeld<Result, Refusal: Error>(
        _ body: () throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        defer { _ = flock(file.descriptor, LOCK_UN) }
        return try body()
    }

    private static func open(_ path: String) throws(SystemFailure) -> OpenFile {
        let file = try OpenFile(
            path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, action: "open the lock file")
        try file.adoptDirectoryOwner()
        return file
    }
}

extension OpenFile {
    /// What root creates in another user's folder is given to that user: a broker that runs as
    /// that user must be able to read it. For anyone else it does nothing.
    borrowing func adoptDirectoryOwner() throws(SystemFailure) {
        guard geteuid() == 0 else { return }
        let directory = try OpenFile(FilePath.directory(of: path), flags: O_RDONLY | O_DIRECTORY)
        let owner = try directory.status()
        try setOwner(user: owner.st_uid, group: owner.st_gid)
    }
}

/// The two halves of a path.
enum FilePath {
    /// The folder that holds `path`: `.` when it names none.
    static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// What follows the last slash.
    static func name(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return String(path[path.utf8.index(after: slash)...])
    }

    /// Where `path` leads when it is a symbolic link; `path` itself when it leads nowhere.
    static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
