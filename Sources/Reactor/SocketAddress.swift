import CLinux
import Glibc

/// A numeric IPv4 or IPv6 address with its port, as `127.0.0.1:1883` or `[::1]:1883`.
public enum SocketAddress {
    /// Fills a socket address; throws for text that is no numeric address ("localhost" is 127.0.0.1).
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

    enum End { case local, peer }

    /// The address of one end of a socket, or "unknown" when the kernel no longer knows.
    static func text(of descriptor: CInt, _ end: End) -> String {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                switch end {
                case .local: getsockname(descriptor, address, &length)
                case .peer: getpeername(descriptor, address, &length)
                }
            }
        }
        guard result == 0 else { return "unknown" }
        return text(&storage)
    }

    private static func text(_ storage: inout sockaddr_storage) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        let family = CInt(storage.ss_family)
        return withUnsafeBytes(of: &storage) { bytes in
            if family == AF_INET {
                var address = bytes.load(as: sockaddr_in.self)
                inet_ntop(AF_INET, &address.sin_addr, &buffer, socklen_t(buffer.count))
                return "\(string(buffer)):\(UInt16(bigEndian: address.sin_port))"
            }
            guard family == AF_INET6 else { return "unknown" }
            var address = bytes.load(as: sockaddr_in6.self)
            inet_ntop(AF_INET6, &address.sin6_addr, &buffer, socklen_t(buffer.count))
            return "[\(string(buffer))]:\(UInt16(bigEndian: address.sin6_port))"
        }
    }

    private static func string(_ buffer: [CChar]) -> String {
        String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
