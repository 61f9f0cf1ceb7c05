import Glibc

/// An address that cannot be listened on, with reason and advice.
public struct ListenFailure: Error, Equatable, CustomStringConvertible {
    /// The section of the configuration, such as `listeners[0]`.
    public let section: String
    /// The address with its port.
    public let address: String
    /// The value of `errno`.
    public let code: CInt

    public init(section: String, address: String, code: CInt) {
        self.section = section
        self.address = address
        self.code = code
    }

    public var description: String {
        "\(section): cannot listen on \(address): \(String(cString: strerror(code)).lowercased()). "
            + cure
    }

    private var cure: String {
        switch code {
        case EADDRINUSE:
            "Stop what uses the address, or set another with \(section).port and \(section).address."
        case EADDRNOTAVAIL:
            "This machine has no such address: set one of its own in \(section).address."
        case EACCES:
            "Ports below 1024 take a right (CAP_NET_BIND_SERVICE): grant it, or set another \(section).port."
        default: "Check \(section).address and \(section).port."
        }
    }
}
