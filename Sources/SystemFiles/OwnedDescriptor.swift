import Glibc

/// Sole owner of an open descriptor; leaving scope closes it, so a leak takes a deliberate act.
public struct OwnedDescriptor: ~Copyable, Sendable {
    public let rawValue: CInt

    public init(adopting rawValue: CInt) {
        precondition(rawValue >= 0, "adopted descriptor \(rawValue), which is not open")
        self.rawValue = rawValue
    }

    /// Opens a file, which a program that this process starts does not inherit.
    package init(
        opening path: String, flags: CInt, mode: mode_t = 0o600, call: String = "open"
    ) throws(SystemError) {
        let (result, code) = retrying {
            Int(Glibc.open(path, flags | O_CLOEXEC | O_NOCTTY, mode))
        }
        guard result >= 0 else { throw SystemError(call: call, subject: path, code: code) }
        self.init(adopting: CInt(result))
    }

    /// Passes the open descriptor to the caller.
    public consuming func take() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = Glibc.close(rawValue) }
}
