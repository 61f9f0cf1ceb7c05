import CLinux
import Glibc
import SystemFiles

/// A numeric IPv4 or IPv6 address with its port, as `127.0.0.1:1883` or `[::1]:1883`.
public enum SocketAddress {
    /// Parses a numeric address, or "localhost" as 127.0.0.1; throws for other text.
    static func parse(
        _ address: String, port: UInt16
    ) throws(SystemError) -> (storage: sockaddr_storage, length: socklen_t) {
        var storage = sockaddr_storage()
        let text = address == "localhost" ? "127.0.0.1" : address
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            withUnsafeMutableBytes(of: &storage) { bytes in
                let address = sockaddr_in(
                    sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian, sin_addr: four,
                    sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
                bytes.storeBytes(of: address, as: sockaddr_in.self)
            }
            return (storage, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else {
            throw SystemError(call: "parse", subject: address, code: EINVAL)
        }
        withUnsafeMutableBytes(of: &storage) { bytes in
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = six
            bytes.storeBytes(of: address, as: sockaddr_in6.self)
        }
        return (storage, socklen_t(MemoryLayout<sockaddr_in6>.size))
    }

    /// The address that a socket is bound to, or "unknown" when the kernel no longer knows.
    static func localText(of descriptor: CInt) -> String {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        return result == 0 ? PeerAddress(storage).text : "unknown"
    }
}
