import Credentials
import NIOPosix
import PlainText
import Synchronization

/// The password file of a broker, for the routes: the one source of truth, which `hermesctl users`
/// changes as well, under the same lock.
package struct UserFile: Sendable {
    package let path: String
    /// Reads the file again if it has changed, so that a change is in force when it is answered. It
    /// may wait for the disk.
    package let putInForce: @Sendable () -> Void

    package init(path: String, putInForce: @escaping @Sendable () -> Void) {
        self.path = path
        self.putInForce = putInForce
    }

    /// The longest wait for another program's change.
    private static let patience = Duration.seconds(2)

    /// A user with the hash of the new password.
    typealias Change = PasswordFile.Entry

    /// The result of changes to the file.
    enum Outcome: Sendable {
        /// For each change, true if the user was there before.
        case changed([Bool])
        /// The file would be larger than it may be; nothing was changed.
        case full
    }

    /// All users, in the order of the file; none without a file.
    func entries() async throws(Problem) -> [PasswordFile.Entry] {
        try await onFile { path throws(PasswordFileError) in
            do throws(PasswordFileError) {
                return try PasswordFile.load(path: path).entries
            } catch .missing {
                return []
            }
        }
    }

    /// Adds users, or changes their passwords, all at once.
    func set(_ changes: [Change]) async throws(Problem) -> Outcome {
        let outcome = try await onFile { path throws(PasswordFileError) in
            try PasswordFile.update(path: path, creating: true, lockTimeout: Self.patience) {
                (file) -> Outcome in
                let before = file
                let existed = file.setAll(changes)
                guard file.contents.count <= PasswordFile.maximumByteCount else {
                    file = before
                    return .full
                }
                return .changed(existed)
            }
        }
        return outcome
    }

    /// Removes a user; false without one.
    func remove(_ name: UserName) async throws(Problem) -> Bool {
        try await onFile { path throws(PasswordFileError) in
            do throws(PasswordFileError) {
                return try PasswordFile.update(
                    path: path, creating: false, lockTimeout: Self.patience
                ) { $0.remove(name) }
            } catch .missing {
                return false
            }
        }
    }

    /// Uses the file on a thread that may wait for a disk, and puts what it holds into force.
    private func onFile<Value: Sendable>(
        _ work: @escaping @Sendable (String) throws(PasswordFileError) -> Value
    ) async throws(Problem) -> Value {
        do {
            return try await NIOThreadPool.singleton.runIfActive {
                let result = try work(path)
                putInForce()
                return result
            }
        } catch {
            throw Problem(
                .passwordFile, "\(error)".visible(limit: 1_024),
                fix: "See to the file on the broker's machine (password_file), and ask again.",
                headers: [.retryAfter: "5"])
        }
    }
}
