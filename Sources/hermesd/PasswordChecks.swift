import CLinux
import Credentials
import Logging
import Synchronization

/// Checks passwords against a file that is read again whenever it has changed, so that
/// `hermesctl users` takes effect at the next CONNECT. A file that turned bad leaves the users as
/// they were. Passwords that were right are remembered for a while, until the users change.
final class PasswordChecks: Sendable {
    /// One state of the file, good to check passwords against.
    struct Users: Sendable {
        fileprivate var verifier: PasswordVerifier
        fileprivate var stamp: FileStamp?
    }

    private struct State {
        var stamp: FileStamp?
        /// A state of the file that could not be read.
        var refused: Refused?
    }

    private struct Refused {
        var stamp: FileStamp?
        /// The next attempt: what is missing may be a descriptor or memory, and not the file.
        var retryAtMilliseconds: UInt64
    }

    private static let retryMilliseconds: UInt64 = 1_000

    private let path: String
    private let logger: Logger
    private let passwords: RememberingVerifier
    private let state: Mutex<State>

    /// Reads the file, which must be good at the start.
    init(path: String, logger: Logger) throws(PasswordFileError) {
        let stamp = FileStamp(of: path)
        let file = try PasswordFile.load(path: path)
        if let warning = file.accessWarning {
            logger.warning("Password file is open to others", metadata: ["file": "\(warning)"])
        }
        self.path = path
        self.logger = logger
        passwords = RememberingVerifier(PasswordVerifier(file)) { hermes_monotonic_ms() }
        state = Mutex(State(stamp: stamp))
    }

    /// True when the password was found right a short while ago; takes microseconds.
    func recall(userName: [UInt8], password: [UInt8]) -> Bool {
        readIfChanged()
        return passwords.recall(userName: userName, password: password)
    }

    /// True when the password is right; takes as long as its hash asks for.
    func verify(userName: [UInt8], password: [UInt8]) -> Bool {
        readIfChanged()
        return passwords.verify(userName: userName, password: password)
    }

    /// The file as it is now, for ``use(_:)``.
    func read() throws(PasswordFileError) -> Users {
        let stamp = FileStamp(of: path)
        return Users(verifier: PasswordVerifier(try PasswordFile.load(path: path)), stamp: stamp)
    }

    func use(_ users: Users) { state.withLock { use(users, &$0) } }

    private func use(_ users: Users, _ state: inout State) {
        state = State(stamp: users.stamp)
        passwords.use(users.verifier)
    }

    private func readIfChanged() {
        let stamp = FileStamp(of: path)
        state.withLock { state in
            if stamp != state.stamp { readAgain(stamp, &state) }
        }
    }

    private func readAgain(_ stamp: FileStamp?, _ state: inout State) {
        let now = hermes_monotonic_ms()
        if let refused = state.refused, refused.stamp == stamp, now < refused.retryAtMilliseconds {
            return
        }
        do throws(PasswordFileError) {
            let verifier = PasswordVerifier(try PasswordFile.load(path: path))
            use(Users(verifier: verifier, stamp: stamp), &state)
            logger.info(
                "Password file read again",
                metadata: ["file": "\(path)", "users": "\(verifier.userCount)"])
        } catch {
            // Tried again, and said once.
            if state.refused == nil || state.refused?.stamp != stamp {
                logger.error(
                    "Password file unusable, users stay as they were",
                    metadata: ["file": "\(path)", "error": "\(error)"])
            }
            state.refused = Refused(
                stamp: stamp, retryAtMilliseconds: now + Self.retryMilliseconds)
        }
    }
}
