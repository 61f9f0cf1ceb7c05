import Glibc

/// Sole owner of an open descriptor; leaving scope closes it, so a leak takes a deliberate act.
public struct OwnedDescriptor: ~Copyable {
    public let rawValue: CInt

    public init(adopting rawValue: CInt) {
        precondition(rawValue >= 0, "adopted descriptor \(rawValue), which is not open")
        self.rawValue = rawValue
    }

    /// Passes the open descriptor to the caller.
    public consuming func take() -> CInt {
        let descriptor = rawValue
        discard self
        return descriptor
    }

    deinit { _ = Glibc.close(rawValue) }
}
