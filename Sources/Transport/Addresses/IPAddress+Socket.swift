import Addresses
import Glibc

/// Addresses as the kernel takes and gives them.
extension IPAddress {
    /// The address returned by a system call; ``unknown`` unless it is IPv4 or IPv6. An IPv4 client
    /// of a listener on `::` has its IPv4 address.
    init(_ storage: sockaddr_storage) {
        self = withUnsafeBytes(of: storage) { bytes in
            switch CInt(storage.ss_family) {
            case AF_INET:
                let address = bytes.load(as: sockaddr_in.self)
                return IPAddress(
                    ipv4: UInt32(bigEndian: address.sin_addr.s_addr),
                    port: UInt16(bigEndian: address.sin_port))
            case AF_INET6:
                let address = bytes.load(as: sockaddr_in6.self)
                return withUnsafeBytes(of: address.sin6_addr) { six in
                    IPAddress(
                        ipv6High: UInt64(bigEndian: six.loadUnaligned(as: UInt64.self)),
                        low: UInt64(
                            bigEndian: six.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                        port: UInt16(bigEndian: address.sin6_port)
                    ).unmapped
                }
            default: return .unknown
            }
        }
    }

    /// The address for a system call, with the number of bytes that count; none for an unknown family.
    var storage: (bytes: sockaddr_storage, length: socklen_t) {
        var storage = sockaddr_storage()
        let length = withUnsafeMutableBytes(of: &storage) { bytes in
            switch family {
            case .unknown: return 0
            case .ipv4:
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = port.bigEndian
                address.sin_addr.s_addr = UInt32(truncatingIfNeeded: low).bigEndian
                bytes.storeBytes(of: address, as: sockaddr_in.self)
                return MemoryLayout<sockaddr_in>.size
            case .ipv6:
                var address = sockaddr_in6()
                address.sin6_family = sa_family_t(AF_INET6)
                address.sin6_port = port.bigEndian
                withUnsafeMutableBytes(of: &address.sin6_addr) {
                    $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                    $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
                }
                bytes.storeBytes(of: address, as: sockaddr_in6.self)
                return MemoryLayout<sockaddr_in6>.size
            }
        }
        return (storage, socklen_t(length))
    }

    /// The peer of a connected socket, also after its end. Takes one to three system calls.
    public init(peerOf descriptor: CInt) {
        if let peer = Self.ask(descriptor, getpeername) {
            self = peer
            return
        }
        // getpeername fails once the connection has ended, SO_PEERNAME only when the socket is
        // closed. But SO_PEERNAME also fails for a buffer larger than the address.
        var storage = sockaddr_storage()
        if !Self.askPeerName(descriptor, &storage, MemoryLayout<sockaddr_in6>.size),
            !Self.askPeerName(descriptor, &storage, MemoryLayout<sockaddr_in>.size)
        {
            storage = sockaddr_storage()
        }
        self.init(storage)
    }

    /// The address that a socket is bound to; ``unknown`` when the kernel no longer knows.
    init(localOf descriptor: CInt) {
        self = Self.ask(descriptor, getsockname) ?? .unknown
    }

    private static func ask(
        _ descriptor: CInt,
        _ call: (CInt, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) -> IPAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call(descriptor, $0, &length)
            }
        }
        return result == 0 ? IPAddress(storage) : nil
    }

    private static func askPeerName(
        _ descriptor: CInt, _ storage: inout sockaddr_storage, _ size: Int
    ) -> Bool {
        var length = socklen_t(size)
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERNAME, &storage, &length) == 0
    }
}
