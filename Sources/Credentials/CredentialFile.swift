import Glibc

/// How files of users, tokens, certificates and keys are read and replaced.
package enum CredentialFile {
    /// Why there is nothing to read.
    package enum Failure: Error, Equatable, Sendable {
        case missing
        case notRegularFile
        /// The path is a symbolic link, and it or what it leads to belongs to that user.
        case foreignLink(owner: UInt32)
        case tooLarge(byteCount: Int)
        case system(SystemFailure)
    }

    /// A whole file, and who may do what with it.
    package struct Contents: Sendable {
        package let bytes: [UInt8]
        /// The permission bits.
        package let mode: UInt32
        /// User identifier.
        package let owner: UInt32
    }

    /// Reads a whole file of at most `maximumByteCount` bytes.
    ///
    /// A symbolic link is followed only when the link and its target belong to this process's user
    /// or to root: who could plant a link where we look would otherwise choose what we read.
    package static func read(
        _ path: String, maximumByteCount: Int
    ) throws(Failure) -> Contents {
        var link = stat()
        let isLink = lstat(path, &link) == 0 && link.st_mode & S_IFMT == S_IFLNK
        let status: stat
        var bytes: [UInt8] = []
        do throws(SystemFailure) {
            let file = try OpenFile(path, flags: O_RDONLY)
            status = try file.status()
            if status.isRegularFile {
                bytes = try file.readAll(maximumByteCount: maximumByteCount)
            }
        } catch {
            if error.errno == ENOENT { throw .missing }
            throw .system(error)
        }
        if isLink {
            for owner in [link.st_uid, status.st_uid] where !isOurs(owner) {
                throw .foreignLink(owner: owner)
            }
        }
        guard status.isRegularFile else { throw .notRegularFile }
        if bytes.count > maximumByteCount {
            throw .tooLarge(byteCount: Int(status.st_size))
        }
        return Contents(bytes: bytes, mode: status.st_mode & 0o7777, owner: status.st_uid)
    }

    /// Refuses a symbolic link that ``read(_:maximumByteCount:)`` would not follow, before a change
    /// follows it.
    static func checkLink(_ path: String) throws(Failure) {
        var link = stat()
        guard lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK else { return }
        guard isOurs(link.st_uid) else { throw .foreignLink(owner: link.st_uid) }
        var target = stat()
        guard stat(path, &target) == 0, !isOurs(target.st_uid) else { return }
        throw .foreignLink(owner: target.st_uid)
    }

    /// Lets `change` make new contents of a file, with the lock held, so that two changes at a time
    /// never lose one.
    ///
    /// The new contents replace the old ones at once and are on disk when this returns. Owner, group
    /// and mode stay; a new file gets mode 0600.
    /// - Parameters:
    ///   - path: the file; a symbolic link is followed and stays.
    ///   - lockTimeout: how long to wait for another program's change.
    ///   - whenFailed: words for a lock that could not be had, and for what failed while writing.
    ///   - change: runs once, with the file's own path; returns the contents to write, `nil` for
    ///     none. What takes long belongs before the call.
    /// - Returns: What `change` returned beside the contents.
    /// - Throws: What `change` throws, and what `whenFailed` makes of a failure; the old file is then
    ///   still in place, except that a failure to write the folder to disk comes after the replacement.
    static func update<Result, Refusal: Error>(
        _ path: String, lockTimeout: Duration,
        describing whenFailed: (FileLock.Failure) -> Refusal,
        _ change: (_ target: String) throws(Refusal) -> (contents: [UInt8]?, result: Result)
    ) throws(Refusal) -> Result {
        let target = FilePath.resolved(path)
        let lock: FileLock
        do throws(FileLock.Failure) {
            lock = try FileLock.acquire(path: target + ".lock", timeout: lockTimeout)
        } catch {
            throw whenFailed(error)
        }
        return try lock.whileHeld { () throws(Refusal) -> Result in
            let (contents, result) = try change(target)
            if let contents {
                do throws(SystemFailure) {
                    try replace(target, with: contents)
                } catch {
                    throw whenFailed(.system(error))
                }
            }
            return result
        }
    }

    /// True for this process's user, and for root, who can do everything anyway.
    package static func isOurs(_ owner: UInt32) -> Bool { owner == 0 || owner == geteuid() }

    /// Writes a new file beside the old one, makes it durable, and renames it over the old one.
    private static func replace(
        _ path: String, with contents: [UInt8]
    ) throws(SystemFailure) {
        let directory = FilePath.directory(of: path)
        let temporary = """
            \(directory)/.\(FilePath.name(of: path)).\
            \(String(UInt64.random(in: 0...UInt64.max), radix: 16))
            """
        do throws(SystemFailure) {
            try write(contents, to: temporary, inPlaceOf: path)
            guard rename(temporary, path) == 0 else {
                throw SystemFailure(action: "replace", path: path, errno: errno)
            }
        } catch {
            _ = unlink(temporary)
            throw error
        }
        // The rename itself is durable only once the folder is.
        try OpenFile(directory, flags: O_RDONLY | O_DIRECTORY).synchronize()
    }

    private static func write(
        _ contents: [UInt8], to temporary: String, inPlaceOf path: String
    ) throws(SystemFailure) {
        let file = try OpenFile(
            temporary, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, action: "create")
        var old = stat()
        if stat(path, &old) == 0 {
            try file.setOwner(user: old.st_uid, group: old.st_gid)
            try file.setMode(old.st_mode)
        } else {
            try file.adoptDirectoryOwner()
        }
        try file.writeAll(contents)
        try file.synchronize()
    }
}
