import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.4 to 3.7: PUBACK, PUBREC, PUBREL, PUBCOMP")
struct Answers5Conformance {
    @Test(
        "MQTT5-3.4.2-1, MQTT5-3.5.2-1, MQTT5-3.6.2-1, MQTT5-3.7.2-1: a code outside the packet's table ends the connection",
        arguments: Transport.all)
    func codes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let ofPublish: Set<UInt8> = [
            0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99,
        ]
        for code in [UInt8(0x01), 0x04, 0x11, 0x7F, 0x81, 0x82, 0x92, 0x93, 0x8F, 0xA2, 0xFF] {
            #expect(!ofPublish.contains(code))
            for packet in [Packet5.puback(1, code), .pubrec(1, code)] {
                let client = try broker.connect5("client")
                try client.send5(packet)
                try client.expectEnd5(0x82)
            }
        }
        for code in [UInt8(0x01), 0x10, 0x80, 0x91, 0x93, 0xFF] {
            for packet in [Packet5.pubrel(1, code), .pubcomp(1, code)] {
                let client = try broker.connect5("client")
                try client.send5(packet)
                try client.expectEnd5(0x82)
            }
        }
    }

    @Test(
        "Section 3.4.2: every short form of an acknowledgement is taken, and a long one with properties",
        arguments: Transport.all)
    func forms(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2)
        let publisher = try broker.connect5("publisher")
        let properties: [Property5] = [.reason("fine"), .user("n", "v"), .user("n", "v")]
        func forms(_ long: Packet5) -> [[UInt8]] {
            let identifier = Array(long.header.prefix(2))
            return [
                [long.first, 2] + identifier, [long.first, 3] + identifier + [0],
                [long.first, 4] + identifier + [0, 0], long.bytes,
            ]
        }
        for form in 0..<4 {
            try publisher.publish5(topic, "1", qos: 1)
            let one = try #require(try subscriber.next5())
            let first = one.messageIdentifier
            try subscriber.send(bytes: forms(.puback(first, 0, properties))[form])
            try publisher.publish5(topic, "2", qos: 2)
            let two = try #require(try subscriber.next5())
            let second = two.messageIdentifier
            try subscriber.send(bytes: forms(.pubrec(second, 0, properties))[form])
            try subscriber.expect5(.pubrel(second))
            try subscriber.send(bytes: forms(.pubcomp(second, 0, properties))[form])
            try publisher.send5(.publish(topic, "3", qos: 2, 70))
            try publisher.expect5(.pubrec(70))
            try publisher.send(bytes: forms(.pubrel(70, 0, properties))[form])
            try publisher.expect5(.pubcomp(70))
            let three = try #require(try subscriber.next5())
            let third = three.messageIdentifier
            try subscriber.send5(.pubrec(third))
            try subscriber.expect5(.pubrel(third))
            try subscriber.send5(.pubcomp(third))
        }
        try subscriber.expectNothing()
        try publisher.expectNothing()
    }

    @Test(
        "MQTT5-4.4.0-2, MQTT5-4.3.2-3: PUBACK of a failure acknowledges: the message is not sent again",
        arguments: Transport.all, [UInt8(0x10), 0x80, 0x87, 0x97])
    func failingPuback(transport: Transport, code: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.connect5("client", expiry: 60, [.receiveMaximum(1)])
        try first.subscribe5(topic, 1)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "refused", qos: 1)
        try publisher.publish5(topic, "next", qos: 1)
        try first.expect5(.publish(topic, "refused", qos: 1, 1))
        try first.send5(.puback(1, code, [.reason("no"), .user("n", "v")]))
        try first.expect5(.publish(topic, "next", qos: 1, 2))
        try first.expectNothing()
        try first.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(.publish(topic, "next", qos: 1, 2, isDuplicate: true))
        try again.expectNothing()
    }

    @Test(
        "MQTT5-4.3.3-4, MQTT5-4.4.0-2, trap 36: PUBREC of a failure ends the exchange: no PUBREL, no second delivery, and its place in the window is free",
        arguments: Transport.all, [UInt8(0x80), 0x87, 0x97])
    func failingPubrec(transport: Transport, code: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.connect5("client", expiry: 60, [.receiveMaximum(1)])
        try first.subscribe5(topic, 2)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "refused", qos: 2)
        try publisher.publish5(topic, "next", qos: 2)
        try first.expect5(.publish(topic, "refused", qos: 2, 1))
        try first.send5(.pubrec(1, code))
        try first.expect5(.publish(topic, "next", qos: 2, 2))
        try first.expectNothing()
        try first.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(.publish(topic, "next", qos: 2, 2, isDuplicate: true))
        try again.expectNothing()
    }

    @Test(
        "Section 4.13: PUBREL and PUBREC of an unknown identifier are answered with 0x92, and the connection stays",
        arguments: Transport.all)
    func unknownIdentifiers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        try client.send5(.pubrel(9))
        try client.expect5(.pubcomp(9, 0x92))
        try client.send5(.pubrec(9))
        try client.expect5(.pubrel(9, 0x92))
        try client.send5(.puback(9), .pubcomp(9))
        try client.expectNothing()
    }

    // MARK: Exactly once

    @Test(
        "MQTT5-4.3.3-10, trap 35: a repeated PUBLISH before its PUBREL gets PUBREC 0x00 each time, and is passed on once",
        arguments: Transport.all)
    func repeatedPublish(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5("client", expiry: 60)
        for isDuplicate in [false, true, true, false] {
            try client.send5(.publish(topic, "x", qos: 2, 5, isDuplicate: isDuplicate))
            let packet = try #require(try client.next5())
            #expect(packet.type == 5 && [0x00, 0x10].contains(packet.code), "\(packet)")
        }
        try client.finish()
        // The identifier is part of the session.
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.send5(.publish(topic, "x", qos: 2, 5, isDuplicate: true))
        try again.expect5(.pubrec(5))
        try watcher.expect5(.publish(topic, "x"))
        try watcher.expectNothing()
        try again.send5(.pubrel(5))
        try again.expect5(.pubcomp(5))
    }

    @Test(
        "MQTT5-4.3.2-5, MQTT5-4.3.3-12: after PUBACK and PUBCOMP the identifier is that of a new message, whatever DUP says",
        arguments: Transport.all)
    func newMessage(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5("client")
        for isDuplicate in [false, true] {
            try client.send5(.publish(topic, "one", qos: 1, 5, isDuplicate: isDuplicate))
            try client.expect5(.puback(5))
            try client.send5(.publish(topic, "two", qos: 2, 5, isDuplicate: isDuplicate))
            try client.expect5(.pubrec(5))
            try client.send5(.pubrel(5))
            try client.expect5(.pubcomp(5))
            try watcher.expect5(.publish(topic, "one"), .publish(topic, "two"))
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-4.3.3-3, MQTT5-4.3.3-5, MQTT5-4.3.3-6, MQTT5-4.4.0-1, MQTT5-4.6.0-6, MQTT5-3.3.1-1, trap 37: a resume sends again what is unacknowledged, in order and with DUP: PUBREL in place of PUBLISH after PUBREC",
        arguments: Transport.all)
    func resume(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber5("client", to: topic, 2, expiry: 60)
        let publisher = try broker.connect5("publisher")
        for (number, qos) in [(1, UInt8(1)), (2, 2), (3, 2), (4, 1)] {
            try publisher.publish5(topic, "\(number)", qos: qos)
            try first.expect5(.publish(topic, "\(number)", qos: qos, UInt16(number)))
        }
        try first.send5(.pubrec(2))
        try first.expect5(.pubrel(2))
        // At no other time.
        try broker.pass(milliseconds: transport == .memory ? 120_000 : 1_000)
        try first.expectNothing()
        for _ in 0..<2 {
            let again = try broker.connect5(
                "client", cleanStart: false, expiry: 60, sessionPresent: true)
            try again.expect5(
                .publish(topic, "1", qos: 1, 1, isDuplicate: true), .pubrel(2),
                .publish(topic, "3", qos: 2, 3, isDuplicate: true),
                .publish(topic, "4", qos: 1, 4, isDuplicate: true))
            try again.expectNothing()
            try again.finish()
        }
        let last = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        _ = try last.takeAll5()
        try last.send5(.puback(1), .pubcomp(2), .pubrec(3), .puback(4))
        try last.expect5(.pubrel(3))
        try last.send5(.pubcomp(3))
        try last.expectNothing()
        try last.finish()
        let empty = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try empty.expectNothing()
    }

    @Test(
        "MQTT5-4.6.0-5, MQTT5-4.6.0-6: messages of a topic and QoS arrive in the order of their publication",
        arguments: Transport.all, [UInt8(0), 1, 2])
    func order(transport: Transport, qos: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.connect5("subscriber", [.receiveMaximum(5)])
        try subscriber.subscribe5(topic, 2)
        let publisher = try broker.connect5("publisher")
        let packets = (1...40).map { Packet5.publish(topic, "\($0)", qos: qos, UInt16($0)) }
        try publisher.send(bytes: packets.flatMap(\.bytes))
        for number in 1...40 {
            let packet = try #require(try subscriber.next5())
            #expect(packet.payload == Array("\(number)".utf8))
            let identifier = packet.messageIdentifier
            switch qos {
            case 0: break
            case 1: try subscriber.send5(.puback(identifier))
            default:
                // Refused: the shortest way to end an exchange.
                try subscriber.send5(.pubrec(identifier, 0x80))
            }
        }
        try subscriber.expectNothing()
    }
}
