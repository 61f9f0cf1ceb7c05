import Glibc
import PlainText
import SystemFiles

extension LineFile {
    /// Reads and checks the whole file. The caller also shows ``accessWarning``.
    package static func load(path: String) throws(LineFileError<Format>) -> LineFile {
        let file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: Format.maximumByteCount)
        } catch {
            throw LineFileError(error, path: path)
        }
        let status = file.status
        if Format.threat != nil {
            // Root may look after the files of the broker's user.
            if geteuid() != 0, !status.isOurs {
                throw .foreignOwner(path: path, owner: status.owner)
            }
            if status.modeOfOthers & (S_IWGRP | S_IWOTH) != 0 {
                throw .writableByOthers(path: path, mode: status.mode)
            }
        }
        var result = try LineFile(parsing: file.bytes, path: path)
        result.accessWarning = warning(path: path, status)
        return result
    }

    /// Loads the file, lets `change` change it and saves the result, all under a lock, so that two
    /// changes at a time never lose one. Nothing is written when nothing changed.
    ///
    /// The new contents replace the old ones at once and are on disk when this returns. Owner,
    /// group and mode stay; a new file gets mode 0600.
    /// - Parameters:
    ///   - path: the file; a symbolic link is followed and stays.
    ///   - creating: starts from an empty file if there is none, instead of failing.
    ///   - lockTimeout: the longest wait for another program's change.
    ///   - change: runs once, with the lock held; slow work belongs before the call.
    /// - Returns: the result of `change`.
    /// - Throws: ``LineFileError``; the old file is then still in place, except that a failure to
    ///   write the folder to disk comes after the replacement.
    package static func update<Result>(
        path: String, creating: Bool, lockTimeout: Duration = .seconds(10),
        _ change: (inout LineFile) -> Result
    ) throws(LineFileError<Format>) -> Result {
        do throws(WholeFile.Failure) {
            try WholeFile.checkLink(path)
        } catch {
            throw LineFileError(error, path: path)
        }
        return try FileChange.underLock(
            path, lockTimeout: lockTimeout, describing: LineFileError<Format>.init
        ) { (target) throws(LineFileError<Format>) in
            var file = LineFile()
            var before: [UInt8]?
            do throws(LineFileError<Format>) {
                file = try load(path: target)
                before = file.contents
            } catch .missing where creating {
                // The new file begins empty.
            }
            let result = change(&file)
            return (file.contents == before ? nil : file.contents, result)
        }
    }

    /// Reading by the group is left alone: root with the broker's group is a usual set-up.
    private static func warning(path: String, _ status: FileStatus) -> String? {
        let mode = status.mode
        guard status.modeOfOthers & (S_IRWXO | S_IWGRP) != 0 else { return nil }
        let path = VisibleText.escaped(path)
        return """
            the \(Format.noun) "\(path)" has mode 0\(String(mode & 0o777, radix: 8)): others than \
            its owner and group can read it, or others than its owner can change it. \
            Run: chmod 600 '\(path)'
            """
    }
}
