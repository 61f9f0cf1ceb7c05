import CLinux
import Credentials
import Logging
import Synchronization
import SystemFiles

/// Checks passwords against a file that is read again after each change, so `hermesctl users` takes
/// effect at the next CONNECT. If the new file cannot be used, the old users stay. Correct
/// passwords are cached until the users change.
final class PasswordChecks: Sendable {
    /// The users from one state of the file.
    struct Users: Sendable {
        fileprivate var verifier: PasswordVerifier
        fileprivate var stamp: FileStamp?
        /// A warning that others can change or read the file; `nil` otherwise.
        fileprivate var accessWarning: String?
    }

    let path: String
    private let logger: Logger
    private let passwords: RememberingVerifier
    private let file: Mutex<WatchedFiles<FileStamp?>>

    /// Reads the file at the start; any problem is an error.
    init(path: String, logger: Logger) throws(PasswordFileError) {
        let users = try Self.load(path)
        self.path = path
        self.logger = logger
        passwords = RememberingVerifier(users.verifier) { hermes_monotonic_ms() }
        file = Mutex(WatchedFiles(inUse: users.stamp))
        warn(of: users)
    }

    /// True when the file has such a user.
    func knows(userName: [UInt8]) -> Bool {
        readIfChanged()
        return passwords.knows(userName)
    }

    /// True when the password is in the cache of correct ones; takes microseconds.
    func recall(userName: [UInt8], password: [UInt8]) -> Bool {
        readIfChanged()
        return passwords.recall(userName: userName, password: password)
    }

    /// True when the password is correct; takes as long as Argon2 with the hash's parameters.
    func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        readIfChanged()
        return passwords.verify(userName: userName, password: password)
    }

    /// The password file's part in a reload; if the file cannot be used, the old users stay.
    var part: Reload.Part {
        Reload.Part(name: "password file", setting: "password_file") { [self] in
            let users = try Self.load(path)
            let isNew = file.withLock { $0.isChanged(by: users.stamp) }
            return Reload.Prepared(changed: isNew ? "password_file" : nil) { [self] in
                file.withLock { use(users, &$0) }
                if isNew { sayRead(users) }
                warn(of: users)
                return true
            }
        }
    }

    private static func load(_ path: String) throws(PasswordFileError) -> Users {
        let stamp = FileStamp(of: path)
        let file = try PasswordFile.load(path: path)
        return Users(
            verifier: PasswordVerifier(file), stamp: stamp, accessWarning: file.accessWarning)
    }

    private func use(_ users: Users, _ file: inout WatchedFiles<FileStamp?>) {
        file.use(users.stamp)
        passwords.use(users.verifier)
    }

    private func sayRead(_ users: Users) {
        logger.info(
            "Password file read again",
            metadata: ["file": "\(path)", "users": "\(users.verifier.userCount)"])
    }

    private func warn(of users: Users) {
        if let warning = users.accessWarning {
            logger.warning("Password file is open to others", metadata: ["problem": "\(warning)"])
        }
        if users.verifier.userCount == 0 {
            logger.warning(
                "Password file names no user, nobody gets in by a password",
                metadata: ["file": "\(path)"])
        }
    }

    /// Reads the file again if it has changed, as the next check of a password would.
    func readIfChanged() {
        let stamp = FileStamp(of: path)
        file.withLock { file in
            guard file.isDue(stamp, at: .now) else { return }
            do throws(PasswordFileError) {
                let users = try Self.load(path)
                use(users, &file)
                sayRead(users)
                warn(of: users)
            } catch {
                guard file.refuse(stamp, "\(error)", at: .now) else { return }
                logger.error("Password file unusable, users stay as they were", problems: error)
            }
        }
    }
}
