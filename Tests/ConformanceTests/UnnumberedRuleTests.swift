import HermesTesting
import MQTTCodec
import Testing

/// Rules of the specification without a number, and further promises of Hermes.
@Suite("Rules without a number")
struct UnnumberedRuleTests {
    @Test(
        "Section 2.2.3: a remaining length has at most four bytes", arguments: Transport.all,
        ["30 FF FF FF FF 01", "30 80 80 80 80 00", "C0 80 80 80 80", "10 FF FF FF FF"]
            as [WireBytes])
    func fiveByteLength(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(wire: packet)
        try client.expectClosed()
        let first = try broker.open()
        try first.send(bytes: [0x10] + packet.bytes.dropFirst())
        try first.expectClosed()
    }

    @Test(
        "Section 2.2.3: a remaining length may use more bytes than it needs",
        arguments: Transport.all)
    func longForms(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        let connect = try broker.connectPacket("client").encoded()
        try client.send(bytes: [0x10, connect[1] | 0x80, 0x80, 0x00] + connect.dropFirst(2))
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        try client.send(wire: "C0 80 00 C0 80 80 80 00")
        try client.expectBytes([0xD0, 0x00, 0xD0, 0x00])
        // The broker encodes lengths in the shortest form.
        let topic = Array(broker.topic("a").utf8)
        try client.subscribe(broker.topic("a"), .atMostOnce)
        let packet = RawPacket.publish(topic: topic, payload: [1])
        try client.send(bytes: [0x30, packet[1] | 0x80, 0x80, 0x80, 0x00] + packet.dropFirst(2))
        try client.expectBytes(packet)
        try client.expectNothing()
    }

    @Test(
        "Section 2.2.3: every size of remaining length is received and sent unchanged",
        arguments: Transport.all, [0, 1, 127, 128, 16_383, 16_384, 200_000])
    func sizes(transport: Transport, size: Int) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let payload = (0..<max(0, size - topic.count - 2)).map { UInt8(truncatingIfNeeded: $0) }
        let packet = RawPacket.publish(topic: topic, payload: payload)
        let client = try broker.subscriber(to: broker.topic("a"), .atMostOnce)
        try client.send(bytes: packet)
        try client.expectBytes(packet)
        try client.expectNothing()
    }

    @Test(
        "Section 3.1.4: a connection without a complete CONNECT closes after its deadline",
        arguments: Transport.all)
    func connectDeadline(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let start = TCPWire.now
        let silent = try broker.open()
        let trickling = try broker.open()
        try trickling.send(part: [0x10, 0x40, 0x00, 0x04])
        let elapsed = try #require(
            try silent.passUntilClosed(within: BrokerUnderTest.connectTimeout + 5_000))
        let longest = transport != .memory ? TCPWire.now - start : elapsed
        #expect(longest >= BrokerUnderTest.connectTimeout)
        #expect(elapsed <= BrokerUnderTest.connectTimeout + (transport != .memory ? 2_250 : 250))
        try trickling.send(part: [0x4D])
        try trickling.expectClosed()
    }

    @Test("Section 3.1.1: MQTT 3.1 clients are served", arguments: Transport.all)
    func olderClients(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                name: Array("MQIsdp".utf8), level: 3, flags: 0x00,
                payload: RawPacket.field(broker.identifier("client"))))
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        try client.subscribe(topic, .exactlyOnce)
        let modern = try broker.subscriber("modern", to: topic, .exactlyOnce)
        try client.publish(topic, "x", qos: .exactlyOnce)
        for receiver in [client, modern] {
            try receiver.expect(.publish(topic, "x", qos: .exactlyOnce, 1))
        }
        try client.finish()
        let again = try broker.open()
        try again.send(broker.connectPacket("client", cleanSession: false, version: .v3_1))
        guard case .connack(let connack)? = try again.next() else {
            Issue.record("no CONNACK")
            return
        }
        #expect(connack.returnCode == .accepted)
        try again.expect(.publish(topic, "x", qos: .exactlyOnce, 1, isDuplicate: true))
        // The name of MQTT 3.1 with the level of 3.1.1 is no protocol.
        let mixed = try broker.open()
        try mixed.send(
            bytes: RawPacket.connect(
                name: Array("MQIsdp".utf8), level: 4, flags: 0x02, payload: RawPacket.field("x")))
        try mixed.expectBytes([0x20, 0x02, 0x00, 0x01])
        try mixed.expectClosed()
    }

    @Test(
        "Section 3.14.4: the broker closes after DISCONNECT, and answers earlier packets",
        arguments: Transport.all)
    func closesAfterDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(
            .publish(broker.topic("a"), "x", qos: .atLeastOnce, 5), .pingreq, .disconnect)
        try client.expect(.puback(5), .pingresp)
        try client.expectClosed()
    }
}
