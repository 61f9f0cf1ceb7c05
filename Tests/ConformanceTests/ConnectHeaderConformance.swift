import HermesTesting
import MQTTCodec
import Testing

@Suite("3.1.1 and 3.1.2 CONNECT: protocol and flags")
struct ConnectHeaderConformance {
    /// A CONNECT that breaks one rule, with the reason.
    struct Refused: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let packet: WireBytes

        init(_ reason: String, _ packet: WireBytes) {
            testDescription = reason
            self.packet = packet
        }
    }

    private func expectRefusal(
        _ transport: Transport, _ packet: [UInt8], _ location: SourceLocation = #_sourceLocation
    ) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(bytes: packet)
        try client.expectClosed(location)
    }

    @Test(
        "MQTT-3.1.0-1: any first packet but CONNECT closes the connection, and does nothing",
        arguments: Transport.all)
    func firstPacket(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let connect = try broker.connectPacket("late").encoded()
        let packets: [[UInt8]] =
            FixedHeaderConformance.clientPackets.map(\.bytes) + [
                RawPacket.publish(topic: Array(topic.utf8)),
                RawPacket.publish(firstByte: 0x33, topic: Array(topic.utf8), identifier: 1),
                [0x20, 0x02, 0x00, 0x00], [0x90, 0x03, 0x00, 0x01, 0x00],
                [0xB0, 0x02, 0x00, 0x01], [0xD0, 0x00], [0x00, 0x00], [0xF0, 0x00],
            ]
        for packet in packets {
            let client = try broker.open()
            // A later correct CONNECT comes too late.
            try client.send(bytes: packet + connect)
            try client.expectClosed()
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.0-2: a second CONNECT closes the connection, whatever it says",
        arguments: Transport.all)
    func secondConnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets = [
            try broker.connectPacket("client").encoded(),
            try broker.connectPacket("other", cleanSession: false).encoded(),
            // Also with an unsupported level, which would get CONNACK in a first CONNECT.
            RawPacket.connect(level: 5, flags: 0x02, payload: RawPacket.field("x")),
            RawPacket.connect(flags: 0x03, payload: RawPacket.field("x")),
        ]
        for packet in packets {
            let client = try broker.connect("client")
            try client.send(bytes: packet)
            try client.expectClosed()
        }
        _ = try broker.connect("other", cleanSession: false, sessionPresent: false)
    }

    @Test(
        "MQTT-3.1.2-1: another protocol name is not served", arguments: Transport.all,
        ["", "MQT", "MQTTX", "mqtt", "MQTt", "MQIsdP", "MQIsd", "MQIsdpX", "HTTP"])
    func protocolName(transport: Transport, name: String) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                name: Array(name.utf8), flags: 0x02, payload: RawPacket.field("x")))
    }

    @Test(
        "MQTT-3.1.2-2: an unsupported protocol level is answered 0x01, and the connection closes",
        arguments: Transport.all, [0, 1, 2, 3, 6, 0x84, 0xFF] as [UInt8])
    func protocolLevel(transport: Transport, level: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        // With the property length of version 5: further fields of other versions are not parsed.
        try client.send(
            bytes: RawPacket.connect(
                level: level, flags: 0x02, payload: [0x00],
                RawPacket.field(broker.identifier("client"))))
        try client.expectBytes([0x20, 0x02, 0x00, 0x01])
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.1.2-3: the reserved connect flag closes the connection", arguments: Transport.all,
        [0x01, 0x03] as [UInt8])
    func reservedFlag(transport: Transport, flags: UInt8) throws {
        try expectRefusal(
            transport, RawPacket.connect(flags: flags, payload: RawPacket.field("x")))
    }

    @Test(
        "MQTT-3.1.2-9: the will is published with the topic, message and QoS of its CONNECT",
        arguments: Transport.all, QoS.allCases)
    func willFields(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect(
            "client",
            will: PacketContent.Will(topic: topic, message: [0x00, 0xFF, 0x30], qos: qos))
        try client.finish()
        let firstByte = 0x30 | qos.rawValue << 1
        try watcher.expectBytes(
            RawPacket.publish(
                firstByte: firstByte, topic: Array(topic.utf8),
                identifier: qos == .atMostOnce ? nil : 1, payload: [0x00, 0xFF, 0x30]))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-9: an empty will message is a will", arguments: Transport.all)
    func emptyWill(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let client = try broker.connect(
            "client", will: PacketContent.Will(topic: topic, message: []))
        try client.finish()
        try watcher.expect(.publish(topic, ""))
    }

    @Test(
        "MQTT-3.1.2-11: will fields without the will flag close the connection",
        arguments: Transport.all)
    func willFieldsWithoutFlag(transport: Transport) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: 0x02, payload: RawPacket.field("x"), RawPacket.field("will"),
                RawPacket.field("message")))
    }

    @Test(
        "MQTT-3.1.2-13: a will QoS without the will flag closes the connection",
        arguments: Transport.all, [0x0A, 0x12, 0x1A] as [UInt8])
    func willQoSWithoutFlag(transport: Transport, flags: UInt8) throws {
        try expectRefusal(
            transport, RawPacket.connect(flags: flags, payload: RawPacket.field("x")))
    }

    @Test(
        "MQTT-3.1.2-14: will QoS 3 closes the connection", arguments: Transport.all,
        [0x1E, 0x3E] as [UInt8])
    func willQoSThree(transport: Transport, flags: UInt8) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: flags, payload: RawPacket.field("x"), RawPacket.field("will"),
                RawPacket.field("message")))
    }

    @Test(
        "MQTT-3.1.2-15: will retain without the will flag closes the connection",
        arguments: Transport.all)
    func willRetainWithoutFlag(transport: Transport) throws {
        try expectRefusal(
            transport, RawPacket.connect(flags: 0x22, payload: RawPacket.field("x")))
    }

    @Test(
        "MQTT-3.1.2-18: a user name without its flag closes the connection",
        arguments: Transport.all)
    func userNameWithoutFlag(transport: Transport) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: 0x02, payload: RawPacket.field("x"), RawPacket.field("user")))
    }

    @Test(
        "MQTT-3.1.2-19: a user name flag without its field closes the connection",
        arguments: Transport.all)
    func userNameMissing(transport: Transport) throws {
        try expectRefusal(
            transport, RawPacket.connect(flags: 0x82, payload: RawPacket.field("x")))
    }

    @Test(
        "MQTT-3.1.2-20: a password without its flag closes the connection",
        arguments: Transport.all)
    func passwordWithoutFlag(transport: Transport) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: 0x82, payload: RawPacket.field("x"), RawPacket.field("user"),
                RawPacket.field("password")))
    }

    @Test(
        "MQTT-3.1.2-21: a password flag without its field closes the connection",
        arguments: Transport.all)
    func passwordMissing(transport: Transport) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: 0xC2, payload: RawPacket.field("x"), RawPacket.field("user")))
    }

    @Test(
        "MQTT-3.1.2-22: a password flag without the user name flag closes the connection",
        arguments: Transport.all)
    func passwordAlone(transport: Transport) throws {
        try expectRefusal(
            transport,
            RawPacket.connect(
                flags: 0x42, payload: RawPacket.field("x"), RawPacket.field("password")))
    }
}
