import Glibc

/// The address and port of a peer. Its size is fixed, so that no operation allocates.
public struct PeerAddress: Hashable, Sendable, BitwiseCopyable {
    public enum Family: UInt8, Sendable, BitwiseCopyable {
        /// Another address family, or a peer unknown to the kernel.
        case unknown
        case ipv4
        case ipv6
    }

    /// The address as a number of 128 bits; an IPv4 address is in the lowest 32.
    let high: UInt64
    let low: UInt64
    public let port: UInt16
    public let family: Family

    public static var unknown: PeerAddress { PeerAddress(high: 0, low: 0, port: 0, .unknown) }

    init(high: UInt64, low: UInt64, port: UInt16, _ family: Family) {
        self.high = high
        self.low = low
        self.port = port
        self.family = family
    }

    /// An IPv4 address as a number, `0x7F00_0001` for 127.0.0.1.
    public init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: UInt64(ipv4), port: port, .ipv4)
    }

    /// The two halves of an IPv6 address as numbers: 0 and 1 for ::1.
    public init(ipv6High: UInt64, low: UInt64, port: UInt16) {
        self.init(high: ipv6High, low: low, port: port, .ipv6)
    }

    /// `nil` unless the text is a numeric address without zone and brackets.
    init?(host: String, port: UInt16) {
        // inet_pton would stop at a NUL and accept the text before it.
        guard !host.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            self.init(ipv4: UInt32(bigEndian: four.s_addr), port: port)
            return
        }
        var six: (UInt64, UInt64) = (0, 0)
        guard inet_pton(AF_INET6, host, &six) == 1 else { return nil }
        self.init(
            ipv6High: UInt64(bigEndian: six.0), low: UInt64(bigEndian: six.1), port: port)
    }

    /// The address returned by a system call; ``unknown`` unless it is IPv4 or IPv6.
    public init(_ storage: sockaddr_storage) {
        self = withUnsafeBytes(of: storage) { bytes in
            switch CInt(storage.ss_family) {
            case AF_INET:
                let address = bytes.load(as: sockaddr_in.self)
                return PeerAddress(
                    ipv4: UInt32(bigEndian: address.sin_addr.s_addr),
                    port: UInt16(bigEndian: address.sin_port))
            case AF_INET6:
                let address = bytes.load(as: sockaddr_in6.self)
                return withUnsafeBytes(of: address.sin6_addr) { six in
                    PeerAddress(
                        ipv6High: UInt64(bigEndian: six.loadUnaligned(as: UInt64.self)),
                        low: UInt64(
                            bigEndian: six.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                        port: UInt16(bigEndian: address.sin6_port))
                }
            default: return .unknown
            }
        }
    }

    /// The peer of a connected socket, also after its end. Takes one to three system calls.
    public init(peerOf descriptor: CInt) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(descriptor, $0, &length)
            }
        }
        // getpeername fails once the connection has ended, SO_PEERNAME only when the socket is
        // closed. But SO_PEERNAME also fails for a buffer larger than the address.
        if result != 0, !Self.askPeerName(descriptor, &storage, MemoryLayout<sockaddr_in6>.size),
            !Self.askPeerName(descriptor, &storage, MemoryLayout<sockaddr_in>.size)
        {
            storage = sockaddr_storage()
        }
        self.init(storage)
    }

    private static func askPeerName(
        _ descriptor: CInt, _ storage: inout sockaddr_storage, _ size: Int
    ) -> Bool {
        var length = socklen_t(size)
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERNAME, &storage, &length) == 0
    }

    /// `127.0.0.1:1883` or `[::1]:1883`; "unknown" for another family.
    public var text: String {
        switch family {
        case .unknown: "unknown"
        case .ipv4: "\(hostText):\(port)"
        case .ipv6: "[\(hostText)]:\(port)"
        }
    }

    /// The address without port, `127.0.0.1` or `::1`; "unknown" for another family.
    public var hostText: String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        switch family {
        case .unknown: return "unknown"
        case .ipv4:
            var address = UInt32(truncatingIfNeeded: low).bigEndian
            inet_ntop(AF_INET, &address, &buffer, socklen_t(buffer.count))
        case .ipv6:
            var address = (high.bigEndian, low.bigEndian)
            inet_ntop(AF_INET6, &address, &buffer, socklen_t(buffer.count))
        }
        return String(
            decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The IPv4 address in an IPv6 address such as ::ffff:192.0.2.7 (RFC 4291, section 2.5.5.2);
    /// any other address unchanged.
    var unmapped: PeerAddress {
        guard family == .ipv6, high == 0, low >> 32 == 0xFFFF else { return self }
        return PeerAddress(ipv4: UInt32(truncatingIfNeeded: low), port: port)
    }

    /// The network whose connections are counted together: an IPv4 address, or the /64 network of
    /// an IPv6 address, all of which one machine can use.
    public var prefix: PeerNetwork {
        let address = unmapped
        return PeerNetwork(address, length: address.family == .ipv6 ? 64 : 32)
    }
}
