import HermesTesting
import Testing

/// A field of a packet that holds a string.
enum StringField5: CaseIterable, Sendable {
    case topic, filter, filterToRemove, contentType, responseTopic, userName, userValue,
        userOfDisconnect

    /// A packet with this text in the field; all others are right.
    func packet(_ text: [UInt8]) -> [UInt8] {
        let field = RawPacket.field(text)
        let a = RawPacket.field("a")
        func publish(_ property: Property5) -> [UInt8] {
            Packet5.publish("a", "", [property]).bytes
        }
        return switch self {
        case .topic: Packet5.publish(topic: text).bytes
        case .filter: RawPacket.packet(0x82, [0, 1, 0] + field + [0])
        case .filterToRemove: RawPacket.packet(0xA2, [0, 1, 0] + field)
        case .contentType: publish(.field(0x03, text))
        case .responseTopic: publish(.field(0x08, text))
        case .userName: publish(Property5(0x26, field + a))
        case .userValue: publish(Property5(0x26, a + field))
        case .userOfDisconnect:
            Packet5.disconnect(0, [Property5(0x26, a + field)]).bytes
        }
    }
}

@Suite("MQTT 5.0, 1.5 and 2: data types, headers, properties")
struct Data5Conformance {
    /// Sends `bytes` on a new connection, which ends with this code.
    private func expectEnd(
        _ broker: BrokerUnderTest, _ bytes: [UInt8], _ code: UInt8,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let client = try broker.connect5("client")
        try client.send(bytes: bytes)
        let came = try client.nextFrame()
        #expect(
            try came.map { try Packet5(received: $0).plain } == .disconnect(code),
            "\(WireBytes(bytes)) got \(WireBytes(came ?? []))", sourceLocation: location)
        try client.expectClosed(location)
    }

    @Test(
        "MQTT5-1.5.4-1, MQTT5-1.5.7-1, MQTT5-3.3.2-1, MQTT5-3.3.2-13, MQTT5-3.3.2-19, MQTT5-3.8.3-1, MQTT5-3.10.3-1: ill-formed UTF-8 and surrogates in any string are malformed",
        arguments: Transport.all, StringField5.allCases)
    func illFormedText(transport: Transport, field: StringField5) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let texts: [[UInt8]] = [
            [0x61, 0xFF], [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80],
        ]
        for text in texts { try expectEnd(broker, field.packet(text), 0x81) }
    }

    @Test(
        "MQTT5-1.5.4-2, MQTT5-1.5.7-1, MQTT5-4.7.3-2: U+0000 in any string is malformed",
        arguments: Transport.all, StringField5.allCases)
    func nullCharacter(transport: Transport, field: StringField5) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        try expectEnd(broker, field.packet([0x61, 0x00]), 0x81)
        try expectEnd(broker, field.packet([0x00]), 0x81)
    }

    @Test(
        "MQTT5-1.5.4-3: U+FEFF is passed on wherever it stands, and is part of a topic",
        arguments: Transport.all)
    func byteOrderMark(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let marked = broker.topic("\u{FEFF}a")
        let plain = broker.topic("a")
        let subscriber = try broker.subscriber5(to: marked, 0)
        let publisher = try broker.connect5("publisher")
        let properties: [Property5] = [
            .contentType("\u{FEFF}text\u{FEFF}"), .user("\u{FEFF}", "\u{FEFF}v"),
        ]
        try publisher.publish5(marked, "x", properties)
        try publisher.publish5(plain, "y")
        try subscriber.expect5(.publish(marked, "x", properties))
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-1.5.5-1: a Variable Byte Integer has as few bytes as possible, and at most four",
        arguments: Transport.all)
    func variableByteIntegers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let filter = RawPacket.field("a") + [0]
        let packets: [[UInt8]] = [
            // Remaining Length.
            [0xC0, 0x80, 0x00], [0xC0, 0x80, 0x80, 0x00], [0xC0, 0x80, 0x80, 0x80, 0x00],
            [0xC0, 0x80, 0x80, 0x80, 0x80, 0x00], [0xC0, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0xE0, 0x82, 0x00, 0x00, 0x00],
            // Property Length.
            RawPacket.packet(0x30, RawPacket.field("a") + [0x80, 0x00]),
            RawPacket.packet(0x82, [0, 1, 0x80, 0x00] + filter),
            RawPacket.packet(0x82, [0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x01] + filter),
            // Subscription Identifier.
            RawPacket.packet(0x82, [0, 1, 3, 0x0B, 0x81, 0x00] + filter),
            RawPacket.packet(0x82, [0, 1, 6, 0x0B, 0x80, 0x80, 0x80, 0x80, 0x01] + filter),
        ]
        for bytes in packets { try expectEnd(broker, bytes, 0x81) }
    }

    @Test(
        "MQTT5-2.1.3-1, MQTT5-3.6.1-1, MQTT5-3.8.1-1, MQTT5-3.10.1-1, MQTT5-3.15.1-1: reserved flags with other values are malformed",
        arguments: Transport.all)
    func reservedFlags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets: [Packet5] = [
            .puback(1), .pubrec(1), .pubrel(1), .pubcomp(1), .subscribe(1, ["a": 0]),
            .unsubscribe(1, ["a"]), .pingreq, .disconnect(), .auth(0x19, [.field(0x15, "m")]),
        ]
        for packet in packets {
            for flags in UInt8(0)..<16 where flags != packet.first & 0x0F {
                var bytes = packet.bytes
                bytes[0] = bytes[0] & 0xF0 | flags
                // Every flag for three packets, a single bit for the others.
                guard [6, 8, 10].contains(packet.type) || flags.nonzeroBitCount == 1 else {
                    continue
                }
                try expectEnd(broker, bytes, 0x81)
            }
        }
        try expectEnd(broker, [0x00, 0x00], 0x81)
    }

    @Test(
        "MQTT5-2.2.1-2, MQTT5-2.2.2-1, MQTT5-4.3.1-1: a QoS 0 PUBLISH has no identifier, no DUP, and a Property Length of 0",
        arguments: Transport.all)
    func atMostOnceBytes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x")
        try subscriber.expectBytes(RawPacket.packet(0x30, RawPacket.field(topic) + [0x00, 0x78]))
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-2.2.1-3: packet identifier 0 ends the connection", arguments: Transport.all)
    func identifierZero(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets: [Packet5] = [
            .publish("a", "", qos: 1, 0), .publish("a", "", qos: 2, 0),
            .subscribe(0, ["a": 0]), .unsubscribe(0, ["a"]), .puback(0), .pubrec(0), .pubrel(0),
            .pubcomp(0),
        ]
        for packet in packets { try expectEnd(broker, packet.bytes, 0x82) }
    }

    @Test(
        "MQTT5-2.2.1-4, MQTT5-4.3.2-1, MQTT5-4.3.2-2, MQTT5-4.3.3-1, MQTT5-4.3.3-2: the broker takes a free identifier other than 0 for each message, and sends it without DUP",
        arguments: Transport.all)
    func identifiersOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2)
        let publisher = try broker.connect5("publisher")
        for (index, qos) in [UInt8(1), 2, 1, 2, 1].enumerated() {
            try publisher.publish5(topic, "\(index)", qos: qos)
            try subscriber.expect5(
                .publish(topic, "\(index)", qos: qos, UInt16(index + 1)))
        }
        // Acknowledged ones are free again, and the others are not.
        try subscriber.send5(.puback(1), .pubrec(2))
        try subscriber.expect5(.pubrel(2))
        var used: Set<UInt16> = [2, 3, 4, 5]
        for number in 0..<10 {
            try publisher.publish5(topic, "more \(number)", qos: 1)
            let packet = try #require(try subscriber.next5())
            let identifier = packet.messageIdentifier
            #expect(identifier != 0 && used.insert(identifier).inserted)
            #expect(packet.first == 0x32)
        }
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-2.2.1-5, MQTT5-3.3.4-1, MQTT5-4.3.2-4, MQTT5-4.3.3-8, MQTT5-4.3.3-11: acknowledgements carry the identifier of their PUBLISH",
        arguments: Transport.all)
    func identifiersOfAcknowledgements(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 2)
        let client = try broker.connect5("client")
        for identifier in [UInt16(1), 0x0100, 0x1234, 0xFFFF] {
            try client.send5(.publish(topic, "one", qos: 1, identifier))
            try client.expect5(.puback(identifier))
            try client.send5(.publish(topic, "two", qos: 2, identifier))
            try client.expect5(.pubrec(identifier))
            try client.send5(.pubrel(identifier))
            try client.expect5(.pubcomp(identifier))
        }
        try client.send5(.publish(topic, "none"))
        try client.expectNothing()
        #expect(try watcher.takeAll5().count == 9)
    }

    @Test(
        "MQTT5-2.2.1-6, MQTT5-3.8.4-1, MQTT5-3.8.4-2, MQTT5-3.10.4-4: SUBACK and UNSUBACK carry the identifier of their request, and a Property Length",
        arguments: Transport.all)
    func identifiersOfRequests(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        let topic = broker.topic("a")
        for identifier in [UInt16(1), 0x0A0B, 0xFFFF] {
            let bytes = Packet5.integer(identifier)
            try client.send5(.subscribe(identifier, [topic: 1]))
            try client.expectBytes([0x90, 0x04] + bytes + [0x00, 0x01])
            try client.send5(.unsubscribe(identifier, [topic]))
            try client.expectBytes([0xB0, 0x04] + bytes + [0x00, 0x00])
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT5-4.2-1: packets are the bytes of a stream, in whatever pieces they come",
        arguments: Transport.all)
    func pieces(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let packets =
            broker.connectPacket5("client", [.user("n", "v")]).bytes
            + Packet5.subscribe(1, [topic: 0], [.subscription(3)]).bytes
            + Packet5.publish(topic, "x", [.user("n", "v")]).bytes
        for size in [1, 2, 7, packets.count] {
            let client = try broker.open()
            for start in stride(from: 0, to: packets.count, by: size) {
                try client.send(bytes: Array(packets[start..<min(start + size, packets.count)]))
            }
            try client.accept5()
            try client.expect5(
                .suback(1, [0]), .publish(topic, "x", [.user("n", "v"), .subscription(3)]))
            try client.expectNothing()
            try client.disconnect5()
        }
    }

    @Test(
        "Section 2.2.2: properties of a wrong packet, unknown, cut short or reaching past their end are malformed; trap 56",
        arguments: Transport.all)
    func malformedProperties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let misplaced: [Property5] = [
            .sessionExpiry(1), .field(0x12, "x"), .two(0x13, 1), .field(0x15, "x"),
            .field(0x16, "x"), .byte(0x17, 1), .willDelay(1), .byte(0x19, 1), .field(0x1A, "x"),
            .field(0x1C, "x"), .reason("x"), .receiveMaximum(1), .aliasMaximum(1), .byte(0x24, 1),
            .byte(0x25, 1), .packetSize(1), .byte(0x28, 1), .byte(0x29, 1), .byte(0x2A, 1),
        ]
        let unknown = [UInt8(0x00), 0x04, 0x0A, 0x20, 0x2B, 0x7F, 0x80].map {
            Property5.byte($0, 1)
        }
        for property in misplaced + unknown {
            try expectEnd(broker, Packet5.publish("a", "x", [property]).bytes, 0x81)
        }
        let bodies: [[UInt8]] = [
            // Beyond the packet, cut within a number, a string, and a pair.
            [0x05, 0x02, 0x00], [0x03, 0x02, 0x00, 0x00], [0x04, 0x03, 0x00, 0x05, 0x61],
            [0x05, 0x26, 0x00, 0x01, 0x61, 0x00], [0x02, 0x23, 0x00],
        ]
        for body in bodies {
            try expectEnd(broker, RawPacket.packet(0x30, RawPacket.field("a") + body), 0x81)
        }
        for property in [Property5.payloadFormat(0), .messageExpiry(1), .sessionExpiry(1)] {
            try expectEnd(broker, Packet5.subscribe(1, ["a": 0], [property]).bytes, 0x81)
            try expectEnd(broker, Packet5.unsubscribe(1, ["a"], [property]).bytes, 0x81)
        }
        try expectEnd(broker, Packet5.unsubscribe(1, ["a"], [.subscription(1)]).bytes, 0x81)
        try expectEnd(broker, Packet5.puback(1, 0, [.messageExpiry(1)]).bytes, 0x81)
    }

    @Test(
        "Section 2.2.2: a property twice, or with a value that it may not have, is a protocol error; trap 57",
        arguments: Transport.all)
    func wrongValues(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let twice: [Property5] = [
            .payloadFormat(1), .messageExpiry(9), .contentType("x"), .responseTopic("x"),
            .correlation([1]), .alias(1),
        ]
        for property in twice {
            try expectEnd(
                broker, Packet5.publish("a", "x", [property, .user("n", "v"), property]).bytes, 0x82
            )
        }
        try expectEnd(broker, Packet5.publish("a", "x", [.payloadFormat(2)]).bytes, 0x82)
        try expectEnd(
            broker,
            Packet5.subscribe(1, ["a": 0], [.subscription(1), .subscription(2)]).bytes, 0x82)
        try expectEnd(
            broker, Packet5.disconnect(0, [.sessionExpiry(0), .sessionExpiry(0)]).bytes, 0x82)
        // User Property may come as often as it likes.
        let client = try broker.connect5("client")
        let users = [Property5.user("n", "v"), .user("n", "v"), .user("m", "")]
        let topic = broker.topic("a")
        try client.send5(.subscribe(1, [topic: 0], users))
        try client.expect5(.suback(1, [0]))
        try client.expectNothing()
    }
}
