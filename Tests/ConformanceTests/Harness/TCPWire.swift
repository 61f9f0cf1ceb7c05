import Glibc

/// A TCP connection on loopback; every wait is bounded.
final class TCPWire: ConformanceWire {
    /// Milliseconds that the broker may take for anything, on a busy machine.
    static let patience = 15_000

    private var descriptor: CInt
    private var sawEnd = false

    init(port: UInt16) throws(ConformanceFailure) {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw ConformanceFailure("socket: errno \(errno)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else {
            let code = errno
            close(descriptor)
            throw ConformanceFailure(
                "connect to 127.0.0.1:\(port): errno \(code)\n\(HermesdProcess.logTail)")
        }
        var noDelay: CInt = 1
        setsockopt(
            descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &noDelay,
            socklen_t(MemoryLayout<CInt>.size))
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { end() }

    func send(_ bytes: [UInt8]) throws(ConformanceFailure) {
        var rest = bytes[...]
        while !rest.isEmpty, descriptor >= 0 {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try wait(for: POLLOUT, milliseconds: Self.patience, "to take \(rest.count) bytes")
            } else if errno == EPIPE || errno == ECONNRESET {
                // The broker has closed it; the next receive reports this.
                return
            } else {
                throw ConformanceFailure("send: errno \(errno)")
            }
        }
    }

    func receive(within milliseconds: Int) throws(ConformanceFailure) -> [UInt8]? {
        guard descriptor >= 0, !sawEnd else { return nil }
        guard isReady(for: POLLIN, milliseconds: milliseconds) else { return [] }
        let size = 64 * 1_024
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
            count = recv(descriptor, buffer.baseAddress, size, 0)
            initialized = max(0, count)
        }
        if count > 0 { return bytes }
        guard count == 0 || errno == ECONNRESET else {
            throw ConformanceFailure("recv: errno \(errno)")
        }
        sawEnd = true
        return nil
    }

    func finish() throws(ConformanceFailure) {
        guard descriptor >= 0 else { return }
        shutdown(descriptor, CInt(SHUT_WR))
        while let bytes = try receive(within: Self.patience) {
            guard !bytes.isEmpty else {
                throw ConformanceFailure("the broker did not close after the end of the stream")
            }
        }
        end()
    }

    func reset() {
        guard descriptor >= 0 else { return }
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        end()
    }

    func pass(milliseconds: Int) throws(ConformanceFailure) {
        let deadline = Self.now + milliseconds
        while true {
            let rest = deadline - Self.now
            guard rest > 0 else { return }
            _ = poll(nil, 0, CInt(rest))
        }
    }

    func passUntilClosed(within milliseconds: Int) throws(ConformanceFailure) -> Int? {
        let start = Self.now
        while Self.now - start < milliseconds {
            guard try receive(within: milliseconds - (Self.now - start)) != nil else {
                return Self.now - start
            }
        }
        return nil
    }

    /// Milliseconds of the monotonic clock.
    static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    }

    private func end() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    private func wait(
        for event: CInt, milliseconds: Int, _ purpose: String
    ) throws(ConformanceFailure) {
        guard isReady(for: event, milliseconds: milliseconds) else {
            throw ConformanceFailure("waited \(milliseconds) ms for the broker \(purpose)")
        }
    }

    private func isReady(for event: CInt, milliseconds: Int) -> Bool {
        let deadline = Self.now + milliseconds
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
            let count = poll(&entry, 1, CInt(max(0, deadline - Self.now)))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }
}
