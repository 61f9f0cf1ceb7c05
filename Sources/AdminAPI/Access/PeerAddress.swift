import NIOCore

/// Who is at the other end, as far as failures are counted together: an IPv4 address, or the /64
/// network of an IPv6 address, of which one machine can have all.
struct PeerAddress: Hashable, Sendable, CustomStringConvertible {
    /// Network byte order: 4 bytes of IPv4, 8 of IPv6, none of anything else.
    private let bytes: [UInt8]

    /// - Parameter address: `nil` and Unix sockets count as one peer.
    init(_ address: SocketAddress?) {
        switch address {
        case .v4(let address):
            bytes = withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
        case .v6(let address):
            let whole = withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
            // IPv4 that came through a listener of IPv6 (RFC 4291, section 2.5.5.2).
            let isMapped = whole.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF])
            bytes = isMapped ? Array(whole.suffix(4)) : Array(whole.prefix(8))
        case .unixDomainSocket, nil:
            bytes = []
        }
    }

    /// True for this machine's own: 127.0.0.0/8, or the network of `::1`.
    var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 8)
    }

    /// One peer as the log names it, with its port: `192.0.2.7:50312` or `[2001:db8::1]:50312`; `unix`
    /// behind a Unix socket. One that reset its connection early has taken its address with it:
    /// `unknown`.
    static func text(_ address: SocketAddress?) -> String {
        guard let address else { return "unknown" }
        guard let host = address.ipAddress, let port = address.port else { return "unix" }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Without the port: `192.0.2.7`, or the network `2001:db8:0:1::/64`.
    var description: String {
        switch bytes.count {
        case 4: return bytes.map(String.init).joined(separator: ".")
        case 8:
            let groups = stride(from: 0, to: 8, by: 2).map { index in
                String(UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]), radix: 16)
            }
            return groups.joined(separator: ":") + "::/64"
        default: return "unix"
        }
    }
}
