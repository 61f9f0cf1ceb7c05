import Glibc
import PlainText
import SystemFiles

/// The lock of a data directory, which a running broker holds for as long as it lives.
enum DataDirectoryLock {
    /// Takes the lock; `nil` if a broker has it, or if no broker has ever been here.
    static func take(_ directory: String) throws(CommandFailure) -> FileLock? {
        do throws(SystemError) {
            return try FileLock.take("\(directory)/lock", creating: false)
        } catch {
            if error.code == ENOENT || error.code == ENOTDIR { return nil }
            throw CommandFailure(
                .localFile,
                """
                cannot open "\(VisibleText.escaped(error.subject))": \
                \(SystemError.reason(for: error.code)). Run it as the user of the broker, or ask \
                the running broker with --url.
                """)
        }
    }
}
