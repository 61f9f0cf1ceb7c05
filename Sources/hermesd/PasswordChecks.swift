import Credentials
import Logging
import Synchronization

/// Checks passwords against a file that is read again whenever it has changed, so that
/// `hermesctl users` takes effect at the next CONNECT. A file that turned bad leaves the users as
/// they were.
final class PasswordChecks: Sendable {
    /// One state of the file, good to check passwords against.
    struct Users: Sendable {
        fileprivate var verifier: PasswordVerifier
        fileprivate var stamp: FileStamp?
    }

    private let path: String
    private let logger: Logger
    private let state: Mutex<Users>

    /// Reads the file, which must be good at the start.
    init(path: String, logger: Logger) throws(PasswordFileError) {
        let stamp = FileStamp(of: path)
        let file = try PasswordFile.load(path: path)
        if let warning = file.accessWarning {
            logger.warning("Password file is open to others", metadata: ["file": "\(warning)"])
        }
        self.path = path
        self.logger = logger
        state = Mutex(Users(verifier: PasswordVerifier(file), stamp: stamp))
    }

    func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        current().verify(userName: userName, password: password)
    }

    /// The file as it is now, for ``use(_:)``.
    func read() throws(PasswordFileError) -> Users {
        let stamp = FileStamp(of: path)
        return Users(verifier: PasswordVerifier(try PasswordFile.load(path: path)), stamp: stamp)
    }

    func use(_ users: Users) { state.withLock { $0 = users } }

    private func current() -> PasswordVerifier {
        let stamp = FileStamp(of: path)
        return state.withLock { state in
            guard stamp != state.stamp else { return state.verifier }
            state.stamp = stamp
            do throws(PasswordFileError) {
                state.verifier = PasswordVerifier(try PasswordFile.load(path: path))
                logger.info(
                    "Password file read again",
                    metadata: ["file": "\(path)", "users": "\(state.verifier.userCount)"])
            } catch {
                logger.error(
                    "Password file unusable, users stay as they were",
                    metadata: ["file": "\(path)", "error": "\(error)"])
            }
            return state.verifier
        }
    }
}
