import Addresses
import NIOCore

extension IPAddress {
    /// The address of a caller; ``unknown`` for one behind a Unix socket, and for one that took its address
    /// with it because it reset its connection early.
    init(_ address: SocketAddress?) {
        self = .unknown
        guard let host = address?.ipAddress, let port = address?.port else { return }
        // An IPv4 client of a listener on `::` has its IPv4 address.
        self = IPAddress(host: host, port: UInt16(clamping: port))?.unmapped ?? .unknown
    }

    /// The address of a caller for the log, with its port: `192.0.2.7:50312` or `[2001:db8::1]:50312`;
    /// `unix` behind a Unix socket.
    static func text(_ address: SocketAddress?) -> String {
        if case .unixDomainSocket = address { return "unix" }
        return IPAddress(address).text
    }
}
