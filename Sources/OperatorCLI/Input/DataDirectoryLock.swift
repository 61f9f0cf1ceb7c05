import Credentials
import Glibc
import PlainText
import Store

/// The lock of a data directory, which a running broker holds for as long as it lives.
struct DataDirectoryLock: ~Copyable {
    private let descriptor: CInt

    private init(adopting descriptor: CInt) { self.descriptor = descriptor }

    deinit { _ = close(descriptor) }

    /// Takes the lock; `nil` if a broker has it, or if no broker has ever been here.
    static func take(_ directory: String) throws(CommandFailure) -> DataDirectoryLock? {
        let path = "\(directory)/lock"
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw CommandFailure(
                .localFile,
                """
                cannot open "\(VisibleText.escaped(path))": \(SystemFailure.text(of: errno)). Run \
                it as the user of the broker, or ask the running broker with --url.
                """)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            _ = close(descriptor)
            return nil
        }
        return DataDirectoryLock(adopting: descriptor)
    }

    /// Runs `body` and keeps brokers out meanwhile.
    borrowing func whileHeld<Result>(
        _ body: () throws(StoreFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(StoreFailure) {
            return try body()
        } catch {
            throw CommandFailure(.localFile, "\(error)")
        }
    }
}
