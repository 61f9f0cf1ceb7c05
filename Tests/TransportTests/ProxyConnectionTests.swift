import HermesTesting
import Structures
import SystemFiles
import Testing
import Transport

@Suite("Transport: connections from a proxy")
struct ProxyConnectionTests {
    private static let header = [UInt8]("PROXY TCP4 192.0.2.7 198.51.100.1 56324 1883\r\n".utf8)

    private func proxied() throws(SystemError) -> EchoServer {
        var server = try EchoServer()
        server.expectsProxyHeader = true
        return server
    }

    @Test("have the address of their header, and the bytes after it are theirs")
    func address() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        peer.send(Self.header + frame([1, 2, 3]))
        let isEchoed = try server.turn { $0.connections[handle]?.frames == [[1, 2, 3]] }
        #expect(isEchoed)
        #expect(server.connections[handle]?.hasProxyHeader == true)
        #expect(server.reactor.address(of: handle) == "192.0.2.7:56324")
        #expect(server.reactor.bytesReceived == UInt64(Self.header.count + 6))
        #expect(peer.receive() == frame([1, 2, 3]))
    }

    @Test("may send their header byte by byte, and an unfinished one waits without turns")
    func slow() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        for byte in Self.header.dropLast() {
            peer.send([byte])
            try server.turn()
        }
        #expect(server.connections[handle]?.hasProxyHeader == false)
        #expect(server.reactor.address(of: handle) == "127.0.0.1:\(peer.localPort)")
        // The incomplete header was read from the socket, so that no event repeats.
        #expect(try server.turn(milliseconds: 0) == 0)
        peer.send(Self.header.suffix(1) + frame([7]))
        let isEchoed = try server.turn { $0.connections[handle]?.frames == [[7]] }
        #expect(isEchoed)
        #expect(server.reactor.address(of: handle) == "192.0.2.7:56324")
        #expect(server.reactor.keptInput(handle).isEmpty)
    }

    @Test("keep their own address when the header has none")
    func unknown() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        peer.send([UInt8]("PROXY UNKNOWN\r\n".utf8))
        let isThere = try server.turn { $0.connections[handle]?.hasProxyHeader == true }
        #expect(isThere)
        #expect(server.reactor.address(of: handle) == "127.0.0.1:\(peer.localPort)")
    }

    @Test("end when something else comes in place of the header")
    func malformed() throws {
        for (bytes, error) in [
            (frame([1]), .signature), ([UInt8]("PROXY TCP4\r\n".utf8), .fields),
            ([UInt8](repeating: 0x41, count: 70_000), .signature),
        ] as [([UInt8], MalformedProxyHeader)] {
            var server = try proxied()
            let (peer, handle) = try server.connect()
            peer.send(bytes)
            let isRefused = try server.turn { $0.connections[handle]?.malformedHeader == error }
            #expect(isRefused)
            #expect(server.reactor.connectionCount == 0)
        }
    }

    @Test("may close before their header is complete")
    func gone() throws {
        for isReset in [true, false] {
            var server = try proxied()
            let (peer, handle) = try server.connect()
            peer.send(Self.header.prefix(20))
            try server.turn()
            if isReset { peer.reset() } else { peer.end() }
            let hasEnded = try server.turn {
                $0.connections[handle]?.hasEnded == true || $0.connections[handle]?.failure != nil
            }
            #expect(hasEnded)
            server.close(handle)
            #expect(server.reactor.connectionCount == 0)
        }
    }

    @Test("leave nothing to the next connection in their place")
    func reuse() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        peer.send(Self.header)
        let isThere = try server.turn { $0.connections[handle]?.hasProxyHeader == true }
        #expect(isThere)
        server.close(handle)
        #expect(server.reactor.peerAddress(of: handle) == .unknown)
        server.expectsProxyHeader = false
        let (next, nextHandle) = try server.connect()
        #expect(nextHandle.index == handle.index)
        #expect(server.reactor.address(of: nextHandle) == "127.0.0.1:\(next.localPort)")
    }

    @Test("are sent nothing before their header has come")
    func silent() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        var output = OutputQueue()
        frame([1]).withUnsafeBytes { output.append($0, pool: server.pool) }
        guard case .all = server.reactor.send(handle, &output) else {
            Issue.record("output waits for a header")
            return
        }
        #expect(output.isEmpty)
        server.reactor.finishSending(handle)
        #expect(peer.receive().isEmpty)
    }

    @Test("have no TLS to blame and no record to count before their header has come")
    func unread() throws {
        var server = try proxied()
        let (peer, handle) = try server.connect()
        peer.send(Self.header.prefix(10))
        let hasArrived = try server.turn { $0.reactor.bytesReceived == 10 }
        #expect(hasArrived)
        #expect(server.reactor.brokenRecordAlert(of: handle) == nil)
        let held = server.reactor.unfinishedInputs()
        #expect(held.map(\.connection) == [handle])
        #expect(held[0].bytes == server.reactor.unfinishedBytes)
        server.reactor.discardKeptInput(handle)
        #expect(server.reactor.unfinishedBytes == 0)
    }
}
