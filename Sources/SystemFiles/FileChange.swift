import Glibc

/// Changes of whole files that a crash or a reader never sees half done.
package enum FileChange {
    /// Replaces a file's content by that of `change`, under a lock against other programs' changes.
    ///
    /// The new contents replace the old ones at once and are on disk when this returns. Owner, group
    /// and mode stay; a new file gets mode 0600.
    /// - Parameters:
    ///   - path: the file; a symbolic link is followed and stays.
    ///   - lockTimeout: how long to wait for another program's change.
    ///   - whenFailed: makes an error of a lock that was not free, and of a failure to write.
    ///   - change: runs once, with the file's own path; returns the contents to write, `nil` for
    ///     none. Slow work belongs before the call.
    /// - Returns: What `change` returned beside the contents.
    /// - Throws: What `change` throws, and what `whenFailed` makes of a failure; the old file is then
    ///   still in place, except that a failure to write the folder to disk comes after the replacement.
    package static func underLock<Result, Refusal: Error>(
        _ path: String, lockTimeout: Duration,
        describing whenFailed: (FileLock.Failure) -> Refusal,
        _ change: (_ target: String) throws(Refusal) -> (contents: [UInt8]?, result: Result)
    ) throws(Refusal) -> Result {
        let target = FilePath.resolved(path)
        let lock: FileLock
        do throws(FileLock.Failure) {
            lock = try FileLock.acquire(target + ".lock", timeout: lockTimeout)
        } catch {
            throw whenFailed(error)
        }
        return try lock.whileHeld { () throws(Refusal) -> Result in
            let (contents, result) = try change(target)
            if let contents {
                do throws(SystemError) {
                    try replace(target, with: contents)
                } catch {
                    throw whenFailed(.system(error))
                }
            }
            return result
        }
    }

    /// Writes a new file beside the old one, makes it durable, and renames it over the old one.
    package static func replace(_ path: String, with contents: [UInt8]) throws(SystemError) {
        let folder = FilePath.folder(of: path)
        let suffix = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        let draft = "\(folder)/.\(FilePath.name(of: path)).\(suffix)"
        do throws(SystemError) {
            try write(contents, to: draft, inPlaceOf: path)
            guard rename(draft, path) == 0 else {
                throw SystemError(call: "rename", subject: path, code: errno)
            }
        } catch {
            _ = unlink(draft)
            throw error
        }
        try synchronizeFolder(folder)
    }

    /// Makes the names in a folder durable: a file that was made or renamed is found after a crash
    /// only from then on.
    package static func synchronizeFolder(_ path: String) throws(SystemError) {
        try OpenFile(path, flags: O_RDONLY | O_DIRECTORY).synchronize()
    }

    private static func write(
        _ contents: [UInt8], to draft: String, inPlaceOf path: String
    ) throws(SystemError) {
        let file = try OpenFile(
            draft, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, call: "create")
        if let old = FileStatus(of: path) {
            try file.setOwner(user: old.owner, group: old.group)
            try file.setMode(old.mode)
        } else {
            try file.adoptFolderOwner()
        }
        try file.writeAll(contents)
        try file.synchronize()
    }
}
