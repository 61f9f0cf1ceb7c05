import Glibc

/// The peer of a connection: a plain socket on loopback that does not block once connected.
final class TestPeer {
    private(set) var descriptor: CInt
    /// True once the end of the stream has been read.
    private(set) var sawEnd = false
    /// The error that ended it, such as ECONNRESET.
    private(set) var failure: CInt?

    /// Connects to `127.0.0.1:port` or `[::1]:port`; `nil` on failure, with ``errno`` set.
    init?(_ address: String, receiveBuffer: CInt? = nil) {
        guard let colon = address.lastIndex(of: ":"),
            let port = UInt16(address[address.index(after: colon)...])
        else { return nil }
        let isSix = address.hasPrefix("[")
        descriptor = socket(isSix ? AF_INET6 : AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        guard isSix ? connectSix(port) : connectFour(port) else {
            let code = errno
            close(descriptor)
            descriptor = -1
            errno = code
            return nil
        }
        var noDelay: CInt = 1
        setsockopt(
            descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &noDelay,
            socklen_t(MemoryLayout<CInt>.size))
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Its own port, as the server sees it.
    var localPort: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(descriptor, $0, &length)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Sends as much as the socket takes; returns the number of bytes.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Int {
        let count = Array(bytes).withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        return max(count, 0)
    }

    /// Received bytes, at most `most`; empty without any.
    func receive(_ most: Int = 1 << 20) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: most)
        let count = recv(descriptor, &buffer, most, 0)
        if count == 0 { sawEnd = true }
        if count < 0, errno != EAGAIN { failure = errno }
        return Array(buffer[..<max(count, 0)])
    }

    /// Ends its sending direction.
    func finishSending() { shutdown(descriptor, CInt(SHUT_WR)) }

    /// Closes with a reset.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        end()
    }

    func end() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    private func connectFour(_ port: UInt16) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private func connectSix(_ port: UInt16) -> Bool {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }
}
