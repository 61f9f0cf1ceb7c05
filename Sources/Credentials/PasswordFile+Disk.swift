import Glibc
import PlainText
import SystemFiles

extension PasswordFile {
    /// Far more than a broker's users need: some 500,000 lines.
    package static let maximumByteCount = 64 * 1024 * 1024

    /// Reads and checks the whole file. Look at ``accessWarning`` afterwards.
    package static func load(path: String) throws(PasswordFileError) -> PasswordFile {
        let file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: maximumByteCount)
        } catch {
            throw PasswordFileError(error, path: path)
        }
        var result = try PasswordFile(parsing: file.bytes, path: path)
        result.accessWarning = warning(path: path, mode: file.status.mode)
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
        do throws(WholeFile.Failure) {
            try WholeFile.checkLink(path)
        } catch {
            throw PasswordFileError(error, path: path)
        }
        return try FileChange.underLock(
            path, lockTimeout: lockTimeout, describing: PasswordFileError.init
        ) { (target) throws(PasswordFileError) in
            var file: PasswordFile
            var before: [UInt8]?
            do throws(PasswordFileError) {
                file = try load(path: target)
                before = file.contents
            } catch .missing where creating {
                file = PasswordFile()
            }
            let result = change(&file)
            return (file.contents == before ? nil : file.contents, result)
        }
    }

    /// Reading by the group is left alone: root with the broker's group is a usual set-up.
    private static func warning(path: String, mode: UInt32) -> String? {
        guard mode & (S_IRWXO | S_IWGRP) != 0 else { return nil }
        let bits = String(mode & 0o777, radix: 8)
        return """
            the password file "\(VisibleText.escaped(path))" has mode 0\(bits): others than its \
            owner and group can read it, or others than its owner can change it. \
            Run: chmod 600 '\(VisibleText.escaped(path))'
            """
    }
}
