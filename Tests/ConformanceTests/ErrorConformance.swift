import HermesTesting
import MQTTCodec
import Testing

@Suite("4.8 Handling errors, 7 conformance")
struct ErrorConformance {
    /// Packets that break a rule on a connection that was accepted, one per kind of violation.
    static let violations: [WireBytes] = [
        "00 00", "F0 00",  // reserved packet types
        "20 02 00 00", "90 03 00 01 00", "B0 02 00 01", "D0 00",  // only servers send these
        "36 05 00 01 61 00 01",  // QoS 3
        "30 03 00 01 23",  // a wildcard in a topic name
        "82 02 00 01",  // SUBSCRIBE without a filter
        "82 06 00 01 00 01 61 03",  // QoS 3 asked for
        "A2 02 00 01",  // UNSUBSCRIBE without a filter
        "40 03 00 01 00",  // PUBACK with a byte more
        "62 01 00",  // PUBREL with a byte less
        "C0 01 00",  // PINGREQ with a body
        "C1 00",  // flags
        "30 FF FF FF FF 01",  // a remaining length of five bytes
        "10 0D 00 04 4D 51 54 54 04 02 00 00 00 01 61",  // a second CONNECT
    ]

    @Test(
        "MQTT-4.8.0-1: a violation closes the connection that it came on, and no other",
        arguments: Transport.all, violations)
    func violationCloses(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let other = try broker.subscriber("other", to: topic, .atLeastOnce)
        let client = try broker.connect("client")
        // Packets before the violation are processed, packets after it are not.
        try client.send(
            bytes: try PacketContent.publish(topic, "before").encoded() + packet.bytes
                + (try PacketContent.publish(topic, "behind").encoded()))
        try client.expectClosed()
        try other.expect(.publish(topic, "before"))
        try other.expectNothing()
    }

    @Test(
        "MQTT-4.8.0-2: a message that cannot be taken closes its connection, and no other",
        arguments: Transport.all)
    func limitCloses(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: broker.topic("w"), .atMostOnce)
        let client = try broker.connect("client", cleanSession: false)
        // The limit of QoS 2 messages without PUBREL is accepted, one more is not.
        for number in UInt16(1)...1_000 {
            try client.send(
                .publish(topic, "", qos: .exactlyOnce, try #require(PacketIdentifier(number))))
        }
        for number in UInt16(1)...1_000 {
            try client.expect(.pubrec(try #require(PacketIdentifier(number))))
        }
        try client.send(.publish(broker.topic("w"), "too many", qos: .exactlyOnce, 1_001))
        try client.expectClosed()
        try watcher.expectNothing()
        // A message that was not accepted may be sent again once there is room.
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.send(.pubrel(500))
        try again.expect(.pubcomp(500))
        try again.send(
            .publish(broker.topic("w"), "in time", qos: .exactlyOnce, 1_001, isDuplicate: true))
        try again.expect(.pubrec(1_001))
        try watcher.expect(.publish(broker.topic("w"), "in time"))
    }

    @Test(
        "MQTT-7.0.0-2: a whole conversation needs nothing but what the specification prints",
        arguments: Transport.all)
    func noExtension(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                flags: 0x02, keepAlive: 60, payload: RawPacket.field(broker.identifier("client"))))
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        try client.send(bytes: RawPacket.subscribe(1, filter: topic, requestedQoS: 1))
        try client.expectBytes([0x90, 0x03, 0x00, 0x01, 0x01])
        let publisher = try broker.connect("publisher")
        try publisher.send(
            bytes: RawPacket.publish(firstByte: 0x32, topic: topic, identifier: 1, payload: [9]))
        try publisher.expectBytes([0x40, 0x02, 0x00, 0x01])
        try client.expectBytes(
            RawPacket.publish(firstByte: 0x32, topic: topic, identifier: 1, payload: [9]))
        try client.send(wire: "40 02 00 01 C0 00")
        try client.expectBytes([0xD0, 0x00])
        try client.send(bytes: RawPacket.unsubscribe(2, filter: topic))
        try client.expectBytes([0xB0, 0x02, 0x00, 0x02])
        try client.expectNothing()
        try client.send(wire: "E0 00")
        try client.expectClosed()
    }

    @Test(
        "MQTT-7.1.1-1: packets come through an ordered stream, however it is cut",
        arguments: Transport.all)
    func stream(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .atLeastOnce)
        var bytes = try broker.connectPacket("client").encoded()
        bytes += try PacketContent.subscribe(topic, .atMostOnce).encoded()
        bytes += try PacketContent.publish(topic, "first", qos: .atLeastOnce, 2).encoded()
        bytes += [0xC0, 0x00]
        let answers: [PacketContent] = [
            .connack(.accepted(sessionPresent: false)), .suback(1, [0]), .publish(topic, "first"),
            .puback(2), .pingresp,
        ]
        // Byte by byte.
        let slow = try broker.open()
        for byte in bytes { try slow.send(bytes: [byte]) }
        var received: [PacketContent] = []
        while received.count < answers.count, let packet = try slow.next() {
            received.append(packet)
        }
        #expect(Set(received) == Set(answers) && received.count == answers.count)
        try watcher.expect(.publish(topic, "first", qos: .atLeastOnce, 1))
        // Large, and unchanged.
        var generator = SplitMix64(seed: 5)
        let payload = generator.bytes(600_000)
        try slow.send(
            .publish(
                PacketContent.Publish(
                    .atLeastOnce(3, isDuplicate: false), topic: topic, payload: payload)))
        try slow.expectInAnyOrder(
            .puback(3), .publish(PacketContent.Publish(.atMostOnce, topic: topic, payload: payload))
        )
        try watcher.expect(
            .publish(
                PacketContent.Publish(
                    .atLeastOnce(2, isDuplicate: false), topic: topic, payload: payload)))
    }
}
