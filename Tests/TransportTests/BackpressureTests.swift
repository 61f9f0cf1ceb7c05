import Glibc
import HermesTesting
import Structures
import Testing
import Transport

@Suite("Transport: backpressure")
struct BackpressureTests {
    @Test(
        "a peer that does not read blocks its connection alone, and gets everything later",
        arguments: UInt64(1)...4)
    func peerThatDoesNotRead(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var server = try EchoServer()
        let (lazy, blocked) = try server.connect(receiveBuffer: 4_096)
        let (other, _) = try server.connect()
        // Small, large and shared packets: more pieces than one call takes.
        var expected: [UInt8] = []
        var output = OutputQueue()
        while expected.count < 12 << 20 {
            let bytes = random.bytes(random.pick([4, 300, 5_000, 100_000]))
            if random.once(in: 2) {
                let shared = SharedBytes(count: bytes.count, pool: server.pool)
                shared.bytes.copyMemory(from: bytes, byteCount: bytes.count)
                output.append(shared, offset: 0, count: bytes.count, pool: server.pool)
                shared.release(in: server.pool)
            } else {
                bytes.withUnsafeBytes { output.append($0, pool: server.pool) }
            }
            expected += bytes
        }
        server.connections[blocked]?.output = output
        server.flush(blocked)
        #expect(server.connections[blocked]?.isBlocked == true)
        let unsent = try #require(server.connections[blocked]?.output.count)
        #expect(unsent > 0 && unsent < expected.count)

        // Other connections continue, and a full socket is not polled repeatedly.
        other.send(frame([1]))
        let isEchoed = try server.turn { $0.connections.values.contains { $0.frames == [[1]] } }
        #expect(isEchoed)
        #expect(other.receive() == frame([1]))
        #expect(try server.turn(milliseconds: 1) == 0)

        var received: [UInt8] = []
        for _ in 0..<20_000 where received.count < expected.count {
            received += lazy.receive()
            try server.turn(milliseconds: 0)
        }
        #expect(received.count == expected.count)
        #expect(received == expected, "replay with seed \(seed)")
        #expect(server.connections[blocked]?.isBlocked == false)
        #expect(server.connections[blocked]?.output.isEmpty == true)
        // Nothing is left to send, so no event reports a writable socket.
        #expect(try server.turn(milliseconds: 1) == 0)
        #expect(server.reactor.bytesSent == UInt64(expected.count + 4))
    }

    @Test("a bound on what is sent at once: the rest is left, and an event asks for it")
    func parts() throws {
        var server = try EchoServer()
        server.mostSentAtOnce = 10_000
        let (peer, handle) = try server.connect()
        let expected = (0..<95_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        expected.withUnsafeBytes { bytes in
            server.connections[handle]?.output.append(bytes, pool: server.pool)
        }
        server.flush(handle)
        #expect(server.connections[handle]?.output.count == 85_000)
        var received: [UInt8] = []
        for _ in 0..<2_000 where received.count < expected.count {
            try server.turn(milliseconds: 0)
            received += peer.receive()
        }
        #expect(received == expected)
        #expect(server.connections[handle]?.parts == 9)
        #expect(try server.turn(milliseconds: 1) == 0)
    }

    @Test("a blocked connection that is paused too hears of writability alone")
    func blockedAndPaused() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect(receiveBuffer: 4_096)
        [UInt8](repeating: 3, count: 8 << 20).withUnsafeBytes {
            server.connections[handle]?.output.append($0, pool: server.pool)
        }
        server.flush(handle)
        #expect(server.connections[handle]?.isBlocked == true)
        server.reactor.stopReading(handle, awaitsEnd: false)
        peer.send(frame([1]))
        var received = 0
        for _ in 0..<20_000 where received < 8 << 20 {
            received += peer.receive().count
            try server.turn(milliseconds: 0)
        }
        #expect(received == 8 << 20)
        #expect(server.connections[handle]?.frames == [])
        server.reactor.resumeReading(handle)
        let isRead = try server.turn { $0.connections[handle]?.frames == [[1]] }
        #expect(isRead)
    }

    @Test("a connection that is closed while it is blocked gives its output back")
    func closeWhileBlocked() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect(receiveBuffer: 4_096)
        let shared = SharedBytes(count: 8 << 20, pool: server.pool)
        shared.bytes.initializeMemory(as: UInt8.self, repeating: 0, count: shared.count)
        server.connections[handle]?.output.append(
            shared, offset: 0, count: shared.count, pool: server.pool)
        server.flush(handle)
        #expect(server.connections[handle]?.isBlocked == true)
        server.close(handle)
        shared.release(in: server.pool)
        #expect(server.reactor.connectionCount == 0)
        #expect(try server.turn(milliseconds: 1) == 0)
        // Unread input makes the kernel send a reset instead of an end; both end the peer.
        for _ in 0..<10_000 where !peer.sawEnd && peer.failure == nil { _ = peer.receive() }
        #expect(peer.sawEnd || peer.failure != nil)
    }
}
