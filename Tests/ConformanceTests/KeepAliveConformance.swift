import HermesTesting
import MQTTCodec
import Testing

/// The only suite that waits in real time over TCP, with a keep alive of one second.
@Suite("3.1.2.10 Keep alive")
struct KeepAliveConformance {
    /// Milliseconds by which the broker may be late, as documented.
    private let promise = 250

    /// Milliseconds that this machine may add to a wait over TCP.
    private func slack(_ transport: Transport) -> Int {
        switch transport {
        case .memory: 0
        case .tcp, .webSocket: 2_000
        }
    }

    /// Checks that the broker closes the connection in time after the last packet of `send`.
    private func expectClose(
        _ transport: Transport, after due: Int, _ location: SourceLocation = #_sourceLocation,
        _ send: () throws -> Client
    ) throws {
        let start = TCPWire.now
        let client = try send()
        let elapsed = try #require(
            try client.passUntilClosed(within: due + 6_000), "it stayed open",
            sourceLocation: location)
        // Over TCP the broker read the packet somewhere between these times.
        let longest = transport != .memory ? TCPWire.now - start : elapsed
        #expect(longest >= due, sourceLocation: location)
        #expect(elapsed <= due + promise + slack(transport), sourceLocation: location)
    }

    @Test(
        "MQTT-3.1.2-24: silence of one and a half keep alives closes, not earlier and not much later",
        arguments: Transport.all)
    func silence(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let client = try broker.connect(
            "client", keepAlive: 1, will: PacketContent.Will(topic: topic, message: [0x21]))
        // Counted from the last packet, not from CONNECT.
        try broker.pass(milliseconds: 700)
        try expectClose(transport, after: 1_500) {
            try client.send(.publish(broker.topic("a"), "x"))
            return client
        }
        // The will is published, as after a network failure.
        try watcher.expect(.publish(topic, "!"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-24: the deadline follows the client's own keep alive, to within a quarter second",
        arguments: Transport.all)
    func ownKeepAlive(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let keepAlives: [UInt16]
        switch transport {
        case .memory: keepAlives = [1, 2, 3, 10, 59, 600]
        case .tcp, .webSocket: keepAlives = [2]
        }
        for keepAlive in keepAlives {
            try expectClose(transport, after: Int(keepAlive) * 1_500) {
                try broker.connect("client", keepAlive: keepAlive)
            }
        }
    }

    @Test(
        "MQTT-3.1.2-24: bytes that complete no packet do not keep a connection open",
        arguments: Transport.all, ["30 7F 00 40", "C0", "30 FF FF"] as [WireBytes])
    func bytesAreNoPackets(transport: Transport, beginning: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client", keepAlive: 1)
        let watcher = try broker.connect("watcher")
        try client.send(part: beginning.bytes)
        for _ in 0..<8 {
            try broker.pass(milliseconds: 220)
            // One byte at a time of the longest packet.
            if beginning.count > 3 { try client.send(part: [0x61]) }
        }
        try client.expectClosed()
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-24: packets to the client do not keep its connection open",
        arguments: Transport.all)
    func outboundPacketsDoNotCount(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.connect("client", keepAlive: 1)
        try client.subscribe(topic, .atMostOnce)
        for _ in 0..<8 {
            try broker.pass(milliseconds: 220)
            try publisher.publish(topic, "x")
        }
        var packet = try client.next()
        while packet != nil {
            #expect(packet == .publish(topic, "x"))
            packet = try client.next()
        }
        #expect(client.isClosed)
    }

    @Test(
        "MQTT-3.1.2-24: every kind of packet counts for the keep alive", arguments: Transport.all)
    func everyPacketCounts(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client", keepAlive: 1)
        let packets: [PacketContent] = [
            .pingreq, .publish(broker.topic("a"), ""), .puback(1), .pubcomp(1),
            .unsubscribe(1, [Array("a".utf8)]),
        ]
        for packet in packets {
            try broker.pass(milliseconds: 800)
            try client.send(packet)
        }
        try client.expect(.pingresp, .unsuback(1))
        try client.expectNothing()
    }

    @Test("MQTT-3.1.2-24: keep alive 0 asks for no check", arguments: Transport.all)
    func noKeepAlive(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client", keepAlive: 0)
        switch transport {
        case .memory: try broker.pass(milliseconds: 30 * 86_400_000)
        case .tcp, .webSocket: try broker.pass(milliseconds: 1_600)
        }
        try client.expectNothing()
    }
}
