import Glibc
import PlainText
import SystemFiles

extension TokenFile {
    /// Name of the file in the data directory, where it is unless `admin.tokens_file` says otherwise.
    package static let defaultName = "tokens"
    /// Far more than ``maximumCount`` lines need.
    package static let maximumByteCount = 1024 * 1024

    /// Reads and checks the whole file. Look at ``accessWarning`` afterwards.
    ///
    /// Who may write the file can make tokens, so it must belong to this user or to root, and nobody
    /// else may write it.
    package static func load(path: String) throws(TokenFileError) -> TokenFile {
        let file: WholeFile
        do throws(WholeFile.Failure) {
            file = try WholeFile(path, maximumByteCount: maximumByteCount)
        } catch {
            throw TokenFileError(error, path: path)
        }
        // Root looks after files of the broker's user.
        if geteuid() != 0, !file.status.isOurs {
            throw .foreignOwner(path: path, owner: file.status.owner)
        }
        if file.status.mode & (S_IWGRP | S_IWOTH) != 0 {
            throw .writableByOthers(path: path, mode: file.status.mode)
        }
        var result = try TokenFile(parsing: file.bytes, path: path)
        if file.status.mode & S_IRWXO != 0 {
            result.accessWarning = """
                the token file "\(VisibleText.escaped(path))" has mode \
                0\(String(file.status.mode & 0o777, radix: 8)): others can read names and scopes. \
                Run: chmod 600 '\(VisibleText.escaped(path))'
                """
        }
        return result
    }

    /// Loads the file, lets `change` change it and saves the result, under the lock and in the way of
    /// the password file (``PasswordFile/update(path:creating:lockTimeout:_:)``).
    package static func update<Result>(
        path: String, creating: Bool, lockTimeout: Duration = .seconds(10),
        _ change: (inout TokenFile) -> Result
    ) throws(TokenFileError) -> Result {
        do throws(WholeFile.Failure) {
            try WholeFile.checkLink(path)
        } catch {
            throw TokenFileError(error, path: path)
        }
        return try FileChange.underLock(
            path, lockTimeout: lockTimeout, describing: TokenFileError.init
        ) { (target) throws(TokenFileError) in
            var file: TokenFile
            var before: [UInt8]?
            do throws(TokenFileError) {
                file = try load(path: target)
                before = file.contents
            } catch .missing where creating {
                file = TokenFile()
            }
            let result = change(&file)
            return (file.contents == before ? nil : file.contents, result)
        }
    }
}
