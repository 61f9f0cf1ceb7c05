import HermesTesting
import MQTTCodec
import Testing

@Suite("2.3.1 Packet identifiers")
struct PacketIdentifierConformance {
    static let identifiers: [PacketIdentifier] = [1, 2, 0xFF, 0x100, 0x1234, 0xFFFF]

    @Test(
        "MQTT-2.3.1-1: packet identifier 0 closes the connection",
        arguments: Transport.all,
        [
            "32 05 00 01 61 00 00", "34 05 00 01 61 00 00", "82 06 00 00 00 01 61 00",
            "A2 05 00 00 00 01 61",
        ] as [WireBytes])
    func zeroIdentifier(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(wire: packet)
        try client.expectClosed()
    }

    @Test(
        "MQTT-2.3.1-4: identifiers of the broker are never 0 and never in use, through all 65,535",
        arguments: Transport.all)
    func identifiersOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber(to: topic, .atLeastOnce)
        let publisher = try broker.connect("publisher")
        let packet = try PacketContent.publish(topic, "", qos: .atLeastOnce, 1).encoded()
        let count = 65_700
        var next: UInt16 = 1
        let perRound = 20
        for _ in 0..<count / perRound {
            try publisher.send(bytes: [UInt8]((0..<perRound).flatMap { _ in packet }))
            var expected: [UInt8] = []
            var acknowledgements: [UInt8] = []
            for _ in 0..<perRound {
                let high = UInt8(next >> 8)
                let low = UInt8(next & 0xFF)
                expected +=
                    RawPacket.publish(
                        firstByte: 0x32, topic: Array(topic.utf8), identifier: next)
                acknowledgements += [0x40, 0x02, high, low]
                next = next == 65_535 ? 1 : next + 1
            }
            try subscriber.expectBytes(expected)
            try subscriber.send(bytes: acknowledgements)
            try publisher.expect(Array(repeating: .puback(1), count: perRound))
        }
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT-2.3.1-4: an identifier in use is not given again while others come and go",
        arguments: Transport.all)
    func identifierInUse(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber(to: topic, .exactlyOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "held", qos: .atLeastOnce)
        try publisher.publish(topic, "released", qos: .exactlyOnce)
        try subscriber.expect(
            .publish(topic, "held", qos: .atLeastOnce, 1),
            .publish(topic, "released", qos: .exactlyOnce, 2))
        // An identifier stays in use from PUBREC to PUBCOMP as well.
        try subscriber.send(.pubrec(2))
        try subscriber.expect(.pubrel(2))
        for number in UInt16(3)..<300 {
            try publisher.publish(topic, "\(number)", qos: .atLeastOnce)
            let identifier = try #require(PacketIdentifier(number))
            try subscriber.expect(.publish(topic, "\(number)", qos: .atLeastOnce, identifier))
            try subscriber.send(.puback(identifier))
        }
        try subscriber.expectNothing()
        try subscriber.finish()
        // Both identifiers are still in use, so a new message gets another.
        let again = try broker.connect("subscriber", cleanSession: false, sessionPresent: true)
        try again.expect(
            .publish(topic, "held", qos: .atLeastOnce, 1, isDuplicate: true), .pubrel(2))
        try publisher.publish(topic, "new", qos: .atLeastOnce)
        try again.expect(.publish(topic, "new", qos: .atLeastOnce, 300))
        try again.expectNothing()
    }

    @Test(
        "MQTT-2.3.1-4: a client's identifiers and the broker's own are two spaces",
        arguments: Transport.all)
    func identifiersOfBothDirections(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let own = broker.topic("own")
        let watcher = try broker.subscriber("watcher", to: own, .atMostOnce)
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        let delivery = PacketContent.publish(topic, "x", qos: .exactlyOnce, 1)
        let redelivery = PacketContent.publish(topic, "x", qos: .exactlyOnce, 1, isDuplicate: true)
        try publisher.publish(topic, "x", qos: .exactlyOnce)
        try client.expect(delivery)
        // The client's own messages with identifier 1 do not affect the broker's delivery.
        try client.send(.publish(own, "1", qos: .exactlyOnce, 1))
        try client.expect(.pubrec(1))
        try client.send(.pubrel(1))
        try client.expect(.pubcomp(1))
        try client.send(.publish(own, "2", qos: .atLeastOnce, 1))
        try client.expect(.puback(1))
        try client.finish()
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try client.expect(redelivery)
        // Acknowledgements of that delivery do not affect the client's message.
        try client.send(.publish(own, "3", qos: .exactlyOnce, 1))
        try client.expect(.pubrec(1))
        for (answer, reply) in [
            (PacketContent.pubrec(1), PacketContent.pubrel(1)), (.pubcomp(1), nil),
        ] {
            try client.send(answer)
            if let reply { try client.expect(reply) }
            try client.send(.publish(own, "3", qos: .exactlyOnce, 1, isDuplicate: true))
            try client.expect(.pubrec(1))
        }
        try client.send(.pubrel(1))
        try client.expect(.pubcomp(1))
        try client.expectNothing()
        try watcher.expect(.publish(own, "1"), .publish(own, "2"), .publish(own, "3"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-2.3.1-4: every session counts its identifiers by itself", arguments: Transport.all)
    func identifiersBySession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber("first", to: topic, .atLeastOnce)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "1", qos: .atLeastOnce)
        let second = try broker.subscriber("second", to: topic, .atLeastOnce)
        try publisher.publish(topic, "2", qos: .atLeastOnce)
        try first.expect(
            .publish(topic, "1", qos: .atLeastOnce, 1), .publish(topic, "2", qos: .atLeastOnce, 2))
        try second.expect(.publish(topic, "2", qos: .atLeastOnce, 1))
        // An acknowledgement frees the identifier in its own session only.
        try first.send(.puback(1))
        try second.finish()
        try first.expectNothing()
    }

    @Test(
        "MQTT-2.3.1-5: a QoS 0 PUBLISH has no packet identifier, coming in and going out",
        arguments: Transport.all)
    func noIdentifierAtQoS0(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let client = try broker.subscriber("client", to: broker.topic("a"), .exactlyOnce)
        // The bytes in place of an identifier are payload.
        let packet = RawPacket.publish(topic: topic, payload: [0x00, 0x00, 0x01])
        try client.send(bytes: packet)
        try client.expectBytes(packet)
        // Downgraded from QoS 1 and 2, it has no identifier.
        try client.subscribe(broker.topic("a"), .atMostOnce)
        for firstByte: UInt8 in [0x32, 0x34] {
            let publisher = try broker.connect("publisher")
            try publisher.send(
                bytes: RawPacket.publish(
                    firstByte: firstByte, topic: topic, identifier: 0x0102, payload: [0x78]))
            try client.expectBytes(RawPacket.publish(topic: topic, payload: [0x78]))
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT-2.3.1-6: acknowledgements carry the identifier of their PUBLISH",
        arguments: Transport.all, identifiers)
    func acknowledgementIdentifiers(transport: Transport, identifier: PacketIdentifier) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let high = UInt8(identifier.rawValue >> 8)
        let low = UInt8(identifier.rawValue & 0xFF)
        try client.send(.publish(broker.topic("a"), "x", qos: .atLeastOnce, identifier))
        try client.expectBytes([0x40, 0x02, high, low])
        try client.send(.publish(broker.topic("a"), "x", qos: .exactlyOnce, identifier))
        try client.expectBytes([0x50, 0x02, high, low])
        try client.send(.pubrel(identifier))
        try client.expectBytes([0x70, 0x02, high, low])
        // PUBREL has the identifier of its PUBREC.
        try client.send(.pubrec(identifier))
        try client.expectBytes([0x62, 0x02, high, low])
    }

    @Test(
        "MQTT-2.3.1-7: SUBACK and UNSUBACK carry the identifier of their request",
        arguments: Transport.all, identifiers)
    func requestIdentifiers(transport: Transport, identifier: PacketIdentifier) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let filter = Array(broker.topic("a").utf8)
        let high = UInt8(identifier.rawValue >> 8)
        let low = UInt8(identifier.rawValue & 0xFF)
        try client.send(bytes: RawPacket.subscribe(identifier.rawValue, filter: filter))
        try client.expectBytes([0x90, 0x03, high, low, 0x00])
        try client.send(bytes: RawPacket.unsubscribe(identifier.rawValue, filter: filter))
        try client.expectBytes([0xB0, 0x02, high, low])
    }
}
