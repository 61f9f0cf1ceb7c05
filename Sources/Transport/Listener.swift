import Addresses
import CLinux
import Glibc
import SystemFiles

/// Opens listening TCP sockets, whose options every accepted connection inherits.
enum Listener {
    /// Opens a listening socket on a numeric address; port 0 chooses a free one. On `::` it takes
    /// IPv4 clients as well, unless `isIPv6Only`: another socket then has the port for IPv4.
    static func open(
        address: String, port: UInt16, isIPv6Only: Bool = false, userTimeoutMilliseconds: CInt
    ) throws(SystemError) -> OwnedDescriptor {
        let subject = IPAddress.text(host: address, port: port)
        guard let (storage, length) = IPAddress(listener: address, port: port)?.storage else {
            throw SystemError(call: "parse", subject: address, code: EINVAL)
        }
        let raw = socket(
            CInt(storage.ss_family),
            CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue),
            0)
        guard raw >= 0 else { throw SystemError(call: "socket", subject: subject, code: errno) }
        let descriptor = OwnedDescriptor(adopting: raw)
        func set(_ level: CInt, _ option: CInt, _ value: CInt) {
            var value = value
            _ = setsockopt(raw, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
        }
        set(SOL_SOCKET, SO_REUSEADDR, 1)
        set(CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        // Ends a connection whose sent bytes a vanished peer does not acknowledge for this long;
        // the kernel's default is much longer.
        set(CInt(IPPROTO_TCP), TCP_USER_TIMEOUT, userTimeoutMilliseconds)
        if CInt(storage.ss_family) == AF_INET6 {
            set(CInt(IPPROTO_IPV6), IPV6_V6ONLY, isIPv6Only ? 1 : 0)
        }
        let bound = withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(raw, $0, length) }
        }
        guard bound == 0 else { throw SystemError(call: "bind", subject: subject, code: errno) }
        try listen(raw, subject)
        return descriptor
    }

    /// Has a listening socket refuse new clients, and reset those that wait to be accepted, as if it
    /// were closed; it keeps its options. One that does not listen would be shut down for good.
    static func refuse(_ socket: CInt) { SocketShutdown.ofReading(socket) }

    /// Listens again after ``refuse(_:)``, on the address that the socket had.
    ///
    /// - Throws: `EADDRINUSE` when another socket listens there by now.
    static func listenAgain(_ socket: CInt, at address: IPAddress) throws(SystemError) {
        let subject = address.text
        let (storage, length) = address.storage
        let bound = withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) }
        }
        // The kernel keeps a port that was asked for, then answers EINVAL; one that it chose itself,
        // for port 0, has to be asked for now.
        guard bound == 0 || errno == EINVAL else {
            throw SystemError(call: "bind", subject: subject, code: errno)
        }
        try listen(socket, subject)
    }

    private static func listen(_ socket: CInt, _ subject: String) throws(SystemError) {
        guard Glibc.listen(socket, 4_096) == 0 else {
            throw SystemError(call: "listen", subject: subject, code: errno)
        }
    }
}
