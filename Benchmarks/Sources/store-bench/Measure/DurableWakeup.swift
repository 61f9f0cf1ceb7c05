import CLinux
import Glibc

/// Wakes the submitting thread, as the reactor's mailbox does in a broker.
final class DurableWakeup: Sendable {
    private let descriptor: CInt

    init() throws(BenchFailure) {
        descriptor = eventfd(0, CInt(EFD_CLOEXEC))
        guard descriptor >= 0 else {
            throw BenchFailure("no eventfd: \(String(cString: strerror(errno)))")
        }
    }

    deinit { _ = Glibc.close(descriptor) }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Returns once signalled since the last call.
    func wait() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}
