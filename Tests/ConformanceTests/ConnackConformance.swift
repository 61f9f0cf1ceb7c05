import HermesTesting
import MQTTCodec
import Testing

@Suite("3.2 CONNACK")
struct ConnackConformance {
    @Test(
        "MQTT-3.2.0-1: CONNACK comes before anything that the session is owed",
        arguments: Transport.all)
    func connackFirst(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try publisher.publish(topic, "in flight", qos: .atLeastOnce)
        try publisher.publish(topic, "released", qos: .exactlyOnce)
        try client.expect(
            .publish(topic, "in flight", qos: .atLeastOnce, 1),
            .publish(topic, "released", qos: .exactlyOnce, 2))
        try client.send(.pubrec(2))
        try client.expect(.pubrel(2))
        try client.finish()
        try publisher.publish(topic, "queued", qos: .atLeastOnce)

        let again = try broker.open()
        try again.send(broker.connectPacket("client", cleanSession: false), .pingreq)
        var packets = try again.takeAll()
        // Waiting messages are loaded after those in flight, and may arrive later.
        let queued = PacketContent.publish(topic, "queued", qos: .atLeastOnce, 3)
        while !packets.contains(queued), let packet = try again.next() { packets.append(packet) }
        #expect(packets.first == .connack(.accepted(sessionPresent: true)))
        #expect(packets.filter { if case .connack = $0 { true } else { false } }.count == 1)
        #expect(packets.contains(queued))
    }

    @Test(
        "MQTT-3.2.0-1: CONNACK precedes the answers to packets sent along with CONNECT",
        arguments: Transport.all)
    func connackBeforeAnswers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let other = try broker.subscriber("other", to: topic, .atMostOnce)
        let client = try broker.open()
        try client.send(
            broker.connectPacket("client", cleanSession: false),
            .subscribe(2, [PacketContent.Request(topic, .atMostOnce)]),
            .publish(topic, "x", qos: .exactlyOnce, 3))
        try client.expect(.connack(.accepted(sessionPresent: false)))
        try client.expectInAnyOrder(.suback(2, [0]), .publish(topic, "x"), .pubrec(3))
        try other.expect(.publish(topic, "x"))
    }

    @Test(
        "MQTT-3.2.2-1: clean session 1 is accepted with session present 0, session or not",
        arguments: Transport.all)
    func cleanSession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        _ = try broker.connect("client", cleanSession: true, sessionPresent: false)
        let stored = try broker.subscriber(
            "client", to: broker.topic("a"), .atLeastOnce, cleanSession: false)
        // With a session whose client is connected, and with one whose client is offline.
        _ = try broker.connect("client", cleanSession: true, sessionPresent: false)
        try stored.expectClosed()
        let second = try broker.connect("client", cleanSession: false, sessionPresent: false)
        try second.disconnect()
        _ = try broker.connect("client", cleanSession: true, sessionPresent: false)
    }

    @Test(
        "MQTT-3.2.2-2: clean session 0 with a stored session has session present 1",
        arguments: Transport.all)
    func sessionFound(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // Also for a session without content.
        let first = try broker.connect("client", cleanSession: false, sessionPresent: false)
        try first.disconnect()
        let second = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try second.finish()
        _ = try broker.connect("client", cleanSession: false, sessionPresent: true)
    }

    @Test(
        "MQTT-3.2.2-3: clean session 0 without a stored session has session present 0",
        arguments: Transport.all)
    func noSessionFound(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let new = try broker.connect("new", cleanSession: false, sessionPresent: false)
        try new.expectNothing()
        // A clean session leaves nothing, however it ends.
        let clean = try broker.connect("client", cleanSession: true)
        try clean.disconnect()
        let lost = try broker.connect("client", cleanSession: true)
        try lost.finish()
        _ = try broker.connect("client", cleanSession: false, sessionPresent: false)
    }

    @Test(
        "MQTT-3.2.2-4: a refusal has session present 0 although there is a session",
        arguments: Transport.all)
    func sessionPresentOfARefusal(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let owner = try broker.connect("client", cleanSession: false, userName: "alice")
        try owner.disconnect()
        let old = try broker.open()
        try old.send(
            bytes: RawPacket.connect(
                level: 6, flags: 0x80, payload: RawPacket.field(broker.identifier("client")),
                RawPacket.field("alice")))
        try old.expectBytes([0x20, 0x02, 0x00, 0x01])
        let foreign = try broker.open()
        try foreign.send(broker.connectPacket("client", cleanSession: false, userName: "mallory"))
        try foreign.expectBytes([0x20, 0x02, 0x00, 0x05])
        // The session still exists.
        _ = try broker.connect(
            "client", cleanSession: false, userName: "alice", sessionPresent: true)
    }

    @Test(
        "MQTT-3.2.2-5: every refusal is followed by the end of the connection",
        arguments: Transport.all)
    func refusalCloses(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        _ = try broker.connect("owned", userName: "alice")
        let refused: [(packet: [UInt8], code: UInt8)] = [
            (RawPacket.connect(level: 3, flags: 0x02, payload: RawPacket.field("x")), 1),
            (RawPacket.connect(flags: 0x00, payload: [0, 0]), 2),
            (try broker.connectPacket("owned", userName: "mallory").encoded(), 5),
            (try broker.connectPacket("owned").encoded(), 5),
        ]
        for (packet, code) in refused {
            let client = try broker.open()
            try client.send(bytes: packet)
            try client.expectBytes([0x20, 0x02, 0x00, code])
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT-3.2.2-6: where no return code fits, the connection closes without CONNACK",
        arguments: Transport.all)
    func noCodeFits(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let identifier = RawPacket.field("x")
        let packets = [
            RawPacket.connect(name: Array("HTTP".utf8), flags: 0x02, payload: identifier),
            RawPacket.connect(flags: 0x0A, payload: identifier),
            RawPacket.connect(flags: 0x82, payload: identifier),
            RawPacket.connect(flags: 0x02, payload: RawPacket.field([0xFF])),
            // Larger than a first packet may be: 256 MiB, of which only this header is sent.
            [0x10, 0xFF, 0xFF, 0xFF, 0x7F],
        ]
        for packet in packets {
            let client = try broker.open()
            try client.send(bytes: packet)
            try client.expectClosed()
        }
    }
}
