import HermesTesting
import Structures
import Testing
import Transport

@Suite("Transport: unfinished input")
struct UnfinishedInputTests {
    private static func begin(_ bytes: Int, of size: Int = 100_000) -> [UInt8] {
        Array(frame([UInt8](repeating: 7, count: size)).prefix(bytes))
    }

    /// Sends bytes and runs turns until the reactor holds more input.
    private static func hold(
        _ server: inout EchoServer, _ peer: TestPeer, _ bytes: [UInt8]
    ) throws {
        let before = server.reactor.bytesReceived
        peer.send(bytes)
        let hasArrived = try server.turn {
            $0.reactor.bytesReceived == before + UInt64(bytes.count)
        }
        try #require(hasArrived)
    }

    @Test("buffered input is counted, and nothing is left once packets are complete or peers close")
    func counted() throws {
        var server = try EchoServer()
        #expect(server.reactor.unfinishedBytes == 0)
        let (first, _) = try server.connect()
        let (second, handle) = try server.connect()
        try Self.hold(&server, first, Self.begin(100))
        let small = server.reactor.unfinishedBytes
        #expect((100..<200).contains(small))
        try Self.hold(&server, second, Self.begin(60_000))
        #expect(server.reactor.unfinishedBytes >= small + 60_000)
        // The packet grows in place and is then complete.
        try Self.hold(&server, second, [UInt8](repeating: 7, count: 40_003))
        #expect(server.connections[handle]?.frames.count == 1)
        #expect(server.reactor.unfinishedBytes == small)
        first.end()
        let isClosed = try server.turn { server in
            server.connections.values.contains { $0.hasEnded }
        }
        #expect(isClosed)
        server.close(server.handles[0])
        #expect(server.reactor.unfinishedBytes == 0)
        #expect(server.reactor.unfinishedInputs().isEmpty)
    }

    @Test(
        "the oldest packet comes first, even if it has grown since; small ones come last"
    )
    func order() throws {
        var server = try EchoServer()
        var pairs: [(peer: TestPeer, handle: Handle)] = []
        for _ in 0..<4 { pairs.append(try server.connect()) }
        try Self.hold(&server, pairs[3].peer, Self.begin(50))
        try Self.hold(&server, pairs[2].peer, Self.begin(9_000))
        try Self.hold(&server, pairs[0].peer, Self.begin(30_000))
        try Self.hold(&server, pairs[1].peer, Self.begin(6_000))
        try Self.hold(&server, pairs[2].peer, [UInt8](repeating: 7, count: 50_000))
        #expect(
            server.reactor.unfinishedInputs().map(\.connection)
                == [2, 0, 1, 3].map { pairs[$0].handle })
        // The first connection's packet ends, and another begins after it.
        try Self.hold(
            &server, pairs[2].peer,
            [UInt8](repeating: 7, count: 100_003 - 59_000) + Self.begin(20_000))
        #expect(
            server.reactor.unfinishedInputs().map(\.connection)
                == [0, 1, 2, 3].map { pairs[$0].handle })
    }

    @Test("input that the owner holds back is not unfinished, and beyond its bound reads are small")
    func heldBack() throws {
        var server = try EchoServer()
        let (first, handle) = try server.connect()
        let (second, _) = try server.connect()
        try Self.hold(&server, first, Self.begin(60_000))
        let bytes = server.reactor.unfinishedBytes
        let kept = server.reactor.keptInput(handle)
        server.reactor.keep(handle, kept, from: 0, isHeldBack: true)
        #expect(server.reactor.unfinishedBytes == 0)
        #expect(server.reactor.heldBackBytes == bytes)
        #expect(server.reactor.unfinishedInputs().isEmpty)
        server.reactor.heldBackBound = bytes
        second.send(Self.begin(60_000))
        let before = server.reactor.bytesReceived
        let hasRead = try server.turn { $0.reactor.bytesReceived > before }
        #expect(hasRead)
        #expect(server.reactor.bytesReceived == before + 4_096)
        server.reactor.resumeReading(handle)
        #expect(server.reactor.heldBackBytes == 0)
        #expect(server.reactor.unfinishedBytes > bytes)
        server.reactor.stopReading(handle, awaitsEnd: false)
        #expect(server.reactor.heldBackBytes == bytes)
        server.close(handle)
        #expect(server.reactor.heldBackBytes == 0)
    }
}
