import Glibc

extension PasswordFile {
    /// Far more than a broker's users need: some 500,000 lines.
    package static let maximumByteCount = 64 * 1024 * 1024

    /// Reads and checks the whole file. Look at ``accessWarning`` afterwards.
    package static func load(path: String) throws(PasswordFileError) -> PasswordFile {
        let status: stat
        var contents: [UInt8] = []
        do throws(SystemFailure) {
            let file = try OpenFile(path, flags: O_RDONLY)
            status = try file.status()
            if status.isRegularFile {
                contents = try file.readAll(maximumByteCount: maximumByteCount)
            }
        } catch {
            if error.errno == ENOENT { throw .missing(path: path) }
            throw .system(error)
        }
        guard status.isRegularFile else { throw .notRegularFile(path: path) }
        if contents.count > maximumByteCount {
            throw .tooLarge(path: path, byteCount: Int(status.st_size))
        }
        var result = try PasswordFile(parsing: contents, path: path)
        result.accessWarning = warning(path: path, mode: status.st_mode)
        return result
    }

    /// Loads the file, lets `change` change it and saves the result, all under a lock, so that two
    /// changes at a time never lose one. Nothing is written when nothing changed.
    ///
    /// The new contents replace the old ones at once and are on disk when this returns. Owner,
    /// group and mode stay; a new file gets mode 0600.
    /// - Parameters:
    ///   - path: the file; a symbolic link is followed and stays.
    ///   - creating: starts from an empty file when there is none, instead of failing.
    ///   - lockTimeout: how long to wait for another program's change.
    ///   - change: runs once, with the lock held: what takes long belongs before the call.
    /// - Returns: What `change` returned.
    /// - Throws: ``PasswordFileError``; the old file is then still in place, except that a failure
    ///   to write the folder to disk comes after the replacement.
    package static func update<Result>(
        path: String, creating: Bool, lockTimeout: Duration = .seconds(10),
        _ change: (inout PasswordFile) -> Result
    ) throws(PasswordFileError) -> Result {
        let target = FilePath.resolved(path)
        let lock = try FileLock.acquire(path: target + ".lock", timeout: lockTimeout)
        return try lock.whileHeld { () throws(PasswordFileError) -> Result in
            var file: PasswordFile
            var before: [UInt8]?
            do throws(PasswordFileError) {
                file = try load(path: target)
                before = file.contents
            } catch .missing where creating {
                file = PasswordFile()
            }
            let result = change(&file)
            if file.contents != before { try file.replace(path: target) }
            return result
        }
    }

    /// Writes a new file beside the old one, makes it durable, and renames it over the old one.
    private func replace(path: String) throws(PasswordFileError) {
        do throws(SystemFailure) {
            let directory = FilePath.directory(of: path)
            let temporary = """
                \(directory)/.\(FilePath.name(of: path)).\
                \(String(UInt64.random(in: 0...UInt64.max), radix: 16))
                """
            do throws(SystemFailure) {
                try write(to: temporary, inPlaceOf: path)
                guard rename(temporary, path) == 0 else {
                    throw SystemFailure(action: "replace", path: path, errno: errno)
                }
            } catch {
                _ = unlink(temporary)
                throw error
            }
            // The rename itself is durable only once the folder is.
            try OpenFile(directory, flags: O_RDONLY | O_DIRECTORY).synchronize()
        } catch {
            throw .system(error)
        }
    }

    private func write(to temporary: String, inPlaceOf path: String) throws(SystemFailure) {
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

    /// Reading by the group is left alone: root with the broker's group is a usual set-up.
    private static func warning(path: String, mode: mode_t) -> String? {
        guard mode & (S_IRWXO | S_IWGRP) != 0 else { return nil }
        let bits = String(mode & 0o777, radix: 8)
        return """
            the password file "\(VisibleText.escaped(path))" has mode 0\(bits): others than its \
            owner and group can read it, or others than its owner can change it. \
            Run: chmod 600 '\(VisibleText.escaped(path))'
            """
    }
}
