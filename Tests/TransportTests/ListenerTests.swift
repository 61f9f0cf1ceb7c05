import Glibc
import HermesTesting
import Structures
import SystemFiles
import Testing
import Transport

@Suite("Transport: listeners")
struct ListenerTests {
    private static var hasLoopbackSix: Bool {
        let descriptor = socket(AF_INET6, CInt(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }

    private func error(
        listeningOn address: String, port: UInt16
    ) throws -> SystemError? {
        let pool = BytePool()
        var reactor = try Reactor(pool: pool)
        do throws(SystemError) {
            _ = try reactor.listen(address: address, port: port, userTimeout: .seconds(1))
            return nil
        } catch {
            return error
        }
    }

    @Test("port 0 takes a free port and names it")
    func freePort() throws {
        let server = try EchoServer()
        let other = try EchoServer()
        #expect(server.address.hasPrefix("127.0.0.1:"))
        #expect(!server.address.hasSuffix(":0"))
        #expect(server.address != other.address)
    }

    @Test("a taken port is an error with call, address and cause")
    func takenPort() throws {
        let server = try EchoServer()
        let port = try #require(UInt16(server.address.split(separator: ":").last ?? ""))
        let failure = try #require(try error(listeningOn: "127.0.0.1", port: port))
        #expect(failure == SystemError(call: "bind", subject: server.address, code: EADDRINUSE))
        #expect(failure.description == "bind \(server.address): Address already in use")
    }

    @Test("an address that is none, or none of ours, is an error that names it")
    func badAddress() throws {
        #expect(
            try error(listeningOn: "not an address", port: 0)
                == SystemError(call: "parse", subject: "not an address", code: EINVAL))
        #expect(
            try error(listeningOn: "", port: 0)
                == SystemError(call: "parse", subject: "", code: EINVAL))
        // 192.0.2.0/24 is reserved for documentation; nothing is sent there.
        #expect(
            try error(listeningOn: "192.0.2.1", port: 0)
                == SystemError(call: "bind", subject: "192.0.2.1:0", code: EADDRNOTAVAIL))
    }

    @Test("localhost is 127.0.0.1")
    func localhost() throws {
        let server = try EchoServer(address: "localhost")
        #expect(server.address.hasPrefix("127.0.0.1:"))
    }

    @Test(
        "on :: both families connect, and IPv4 clients have their IPv4 address",
        .enabled(if: hasLoopbackSix))
    func bothFamilies() throws {
        var server = try EchoServer(address: "::")
        let port = try #require(server.address.split(separator: ":").last)
        for (host, own) in [("127.0.0.1", "127.0.0.1:"), ("[::1]", "[::1]:")] {
            let peer = try #require(TestPeer("\(host):\(port)"))
            let former = server.handles.count
            let isAccepted = try server.turn { $0.handles.count > former }
            try #require(isAccepted)
            #expect(server.reactor.address(of: server.handles[former]).hasPrefix(own))
            _ = peer
        }
    }

    @Test(
        "beside a listener for IPv4, :: leaves that port's IPv4 clients to it",
        .enabled(if: hasLoopbackSix))
    func familiesApart() throws {
        let four = try EchoServer(address: "0.0.0.0")
        let port = try #require(UInt16(four.address.split(separator: ":").last ?? ""))
        let pool = BytePool()
        var reactor = try Reactor(pool: pool)
        _ = try reactor.listen(address: "::", port: port, isIPv6Only: true, userTimeout: .zero)
        #expect(try error(listeningOn: "::", port: port)?.code == EADDRINUSE)
    }

    @Test("IPv6 works as IPv4 does", .enabled(if: hasLoopbackSix))
    func six() throws {
        var server = try EchoServer(address: "::1")
        #expect(server.address.hasPrefix("[::1]:"))
        let (peer, handle) = try server.connect()
        peer.send(frame([6]))
        let isRead = try server.turn { $0.connections[handle]?.frames == [[6]] }
        #expect(isRead)
        #expect(peer.receive() == frame([6]))
        #expect(server.reactor.address(of: handle).hasPrefix("[::1]:"))
        let port = try #require(UInt16(server.address.split(separator: ":").last ?? ""))
        #expect(try error(listeningOn: "::1", port: port)?.subject == server.address)
    }

    @Test("several listeners serve one reactor")
    func several() throws {
        var server = try EchoServer()
        let second = try server.reactor.listen(address: "127.0.0.1", port: 0, userTimeout: .zero)
        #expect(second == 1)
        let addresses = server.reactor.listenerAddresses
        #expect(addresses.count == 2)
        let peers = try addresses.map { try #require(TestPeer($0)) }
        for peer in peers { peer.send(frame([1])) }
        let areServed = try server.turn { server in
            server.connections.values.count { $0.frames == [[1]] } == 2
        }
        #expect(areServed)
    }

    @Test("closing the listeners refuses newcomers and leaves the others alone")
    func closeListeners() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.reactor.closeListeners()
        #expect(TestPeer(server.address) == nil && errno == ECONNREFUSED)
        guard case .none = server.reactor.accept(0) else {
            Issue.record("a closed listener accepts")
            return
        }
        peer.send(frame([1]))
        let isServed = try server.turn { $0.connections[handle]?.frames == [[1]] }
        #expect(isServed)
    }

    /// Server: has two connections, one of them not accepted, and refuses.
    /// Kernel: resets that one, and answers newcomers as if nobody listened, until told otherwise.
    @Test("refusing leaves connections alone, and listens again on the same port")
    func refuse() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        let waiting = try #require(TestPeer(server.address))
        server.reactor.refuseConnections()
        server.reactor.setAccepting(0, true)
        #expect(TestPeer(server.address) == nil && errno == ECONNREFUSED)
        #expect(waiting.receive().isEmpty && waiting.failure == ECONNRESET)
        guard case .none = server.reactor.accept(0) else {
            Issue.record("a listener that refuses accepts")
            return
        }
        peer.send(frame([1]))
        let isServed = try server.turn { $0.connections[handle]?.frames == [[1]] }
        #expect(isServed)
        #expect(try server.turn(milliseconds: 0) == 0, "a refusing listener is not reported")

        try server.reactor.listenAgain()
        #expect(server.reactor.listenerAddresses == [server.address])
        _ = try server.connect()
        server.reactor.refuseConnections()
        try server.reactor.listenAgain()
        let (last, lastHandle) = try server.connect()
        last.send(frame([2]))
        let isLastServed = try server.turn { $0.connections[lastHandle]?.frames == [[2]] }
        #expect(isLastServed)
    }

    @Test("a port that is another's meanwhile keeps all listeners refusing until it is free")
    func portTaken() throws {
        var server = try EchoServer()
        let second = try server.reactor.listen(address: "127.0.0.1", port: 0, userTimeout: .zero)
        let address = server.reactor.listenerAddresses[second]
        let port = try #require(UInt16(address.split(separator: ":").last ?? ""))
        server.reactor.refuseConnections()
        do {
            var other = try Reactor(pool: BytePool())
            _ = try other.listen(address: "127.0.0.1", port: port, userTimeout: .zero)
            do {
                try server.reactor.listenAgain()
                Issue.record("listens on a port that is another's")
            } catch {
                #expect(error.code == EADDRINUSE && error.subject == address)
            }
            #expect(TestPeer(server.address) == nil && errno == ECONNREFUSED)
            other.closeListeners()
        }
        try server.reactor.listenAgain()
        let peer = try #require(TestPeer(address))
        peer.send(frame([1]))
        let isServed = try server.turn { $0.connections.values.contains { $0.frames == [[1]] } }
        #expect(isServed && TestPeer(server.address) != nil)
    }

    @Test("accepted sockets send small packets at once and give up vanished peers")
    func options() throws {
        var server = try EchoServer()
        let (peer, _) = try server.connect()
        // The server's end is the only socket of this process whose peer has the client's port.
        let accepted = (CInt(3)..<4_096).first { peerPort($0) == peer.localPort }
        let descriptor = try #require(accepted)
        #expect(option(descriptor, TCP_NODELAY) != 0)
        #expect(option(descriptor, TCP_USER_TIMEOUT) == 20_000)
        #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }

    private func peerPort(_ descriptor: CInt) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(descriptor, $0, &length)
            }
        }
        guard result == 0, address.sin_family == AF_INET else { return nil }
        return UInt16(bigEndian: address.sin_port)
    }

    private func option(_ descriptor: CInt, _ name: CInt) -> CInt {
        var value: CInt = -1
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(descriptor, CInt(IPPROTO_TCP), name, &value, &length)
        return value
    }
}
