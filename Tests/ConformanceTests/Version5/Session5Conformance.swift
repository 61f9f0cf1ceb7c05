import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.12, 3.14 and 4.1: PINGREQ, DISCONNECT, session expiry")
struct Session5Conformance {
    @Test("MQTT5-3.12.4-1: PINGREQ is answered", arguments: Transport.all)
    func ping(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        for _ in 0..<3 {
            try client.send(wire: "C0 00")
            try client.expectBytes([0xD0, 0x00])
        }
    }

    @Test(
        "MQTT5-3.14.1-1, MQTT5-4.13.1-1: reserved flags of DISCONNECT are malformed",
        arguments: Transport.all)
    func flags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for first in UInt8(0xE1)...0xEF {
            let client = try broker.connect5("client")
            try client.send(bytes: [first, 0x00])
            try client.expectEnd5(0x81)
        }
    }

    @Test(
        "MQTT5-3.14.2-1, MQTT5-3.14.2-2, MQTT5-3.14.4-1, MQTT5-3.14.4-2, MQTT5-4.13.2-1: the broker's DISCONNECT has a code of its table and no Session Expiry, is its last packet, and the connection closes",
        arguments: Transport.all)
    func disconnectOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let wrong: [(Packet5, UInt8)] = [
            (.publish("", "x"), 0x82), (.publish("#", "x"), 0x90),
            (.publish("a", "x", qos: 3), 0x81), (.publish("a", "x", [.alias(0)]), 0x94),
            (.auth(0x19, [.field(0x15, "m")]), 0x82),
        ]
        for (packet, code) in wrong {
            let client = try broker.subscriber5("client", to: topic, 0, expiry: 60)
            // What follows the faulty packet is not looked at.
            try client.send5(.publish(topic, "before"), packet, .publish(topic, "after"), .pingreq)
            try client.expect5(.publish(topic, "before"))
            let frame = try #require(try client.nextFrame())
            let end = try Packet5(received: frame)
            #expect(end.type == 14 && end.code == code, "\(end)")
            #expect(end.property(0x11) == nil)
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT5-4.13.2-1: DISCONNECT of a client with any code closes, and codes that are only a server's end with 0x82",
        arguments: Transport.all)
    func disconnectOfAClient(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let codes: [UInt8] = [
            0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
        ]
        for code in codes {
            let client = try broker.connect5("client")
            try client.send5(.disconnect(code, [.reason("x"), .user("n", "v")]))
            try client.expectClosed()
        }
        for code in [UInt8(0x01), 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x9C, 0xA0, 0xFF] {
            let client = try broker.connect5("client")
            try client.send5(.disconnect(code))
            try client.expectEnd5(0x82)
        }
    }

    @Test(
        "Trap 12: packets that only servers send end the connection with 0x82",
        arguments: Transport.all)
    func packetsOfServers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for packet in [Packet5.connack(), .suback(1, [0]), .unsuback(1, [0]), .pingresp] {
            let client = try broker.connect5("client")
            try client.send5(packet)
            try client.expectEnd5(0x82)
        }
        let client = try broker.connect5("client")
        try client.send5(.disconnect(0, [.field(0x1C, "elsewhere")]))
        try client.expectEnd5(0x81)
    }

    // MARK: Session expiry

    /// True when `name` still has a session; it ends with this call.
    private func hasSession(_ broker: BrokerUnderTest, _ name: String) throws -> Bool {
        let client = try broker.open()
        try client.send5(broker.connectPacket5(name, cleanStart: false, expiry: 0))
        let connack = try #require(try client.next5())
        #expect(connack.type == 2 && connack.code == 0)
        try client.disconnect5()
        return connack.header[0] == 1
    }

    @Test(
        "MQTT5-4.1.0-1, MQTT5-4.1.0-2: a session is kept while its client is connected and until its expiry has passed",
        arguments: Transport.all)
    func expires(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber5("client", to: topic, 1, expiry: 2)
        try broker.pass(milliseconds: 3_000)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1)
        try first.expect5(.publish(topic, "x", qos: 1, 1))
        try first.finish()
        try broker.pass(milliseconds: 1_000)
        let second = try broker.connect5(
            "client", cleanStart: false, expiry: 2, sessionPresent: true)
        try second.expect5(.publish(topic, "x", qos: 1, 1, isDuplicate: true))
        try second.finish()
        try broker.pass(milliseconds: 4_000)
        let third = try broker.connect5("client", cleanStart: false, expiry: 2)
        try publisher.publish5(topic, "y", qos: 1)
        try third.expectNothing()
    }

    @Test(
        "MQTT5-4.1.0-2, trap 17: without Session Expiry the session ends with its connection, also with Clean Start 0",
        arguments: Transport.all, [false, true])
    func noExpiry(transport: Transport, isClean: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for expiry in [nil, UInt32(0)] {
            let client = try broker.connect5("client", cleanStart: isClean, expiry: expiry)
            try client.subscribe5(broker.topic("a"), 1)
            try client.finish()
            #expect(try !hasSession(broker, "client"))
        }
    }

    @Test(
        "Trap 18: the longest intervals end no session at once", arguments: Transport.all)
    func longest(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for expiry in [UInt32.max, UInt32.max - 1, 0x8000_0000, 0x7FFF_FFFF] {
            let client = try broker.connect5(
                "client", expiry: expiry,
                will: Packet5.Will(
                    topic: broker.topic("will"),
                    properties: [.willDelay(expiry), .messageExpiry(expiry)]))
            try client.publish5(
                broker.topic("r"), "x", retain: true, [.messageExpiry(expiry)])
            try client.finish()
            try broker.pass(milliseconds: transport == .memory ? 86_400_000 : 100)
            let late = try broker.subscriber5("late", to: broker.topic("#"), 0)
            let retained = try #require(try late.next5())
            #expect((retained.property(0x02)?.number ?? 0) > 0x7FF0_0000)
            try late.expectNothing()
            #expect(try hasSession(broker, "client"))
        }
    }

    @Test(
        "Section 3.14.2.2.2: DISCONNECT may lengthen, shorten and end what CONNECT asked for, and changes nothing without the property; trap 16",
        arguments: Transport.all)
    func changedByDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let kept = try broker.connect5("kept", expiry: 60)
        try kept.disconnect5()
        let lengthened = try broker.connect5("lengthened", expiry: 1)
        try lengthened.disconnect5(0, [.sessionExpiry(60)])
        let shortened = try broker.connect5("shortened", expiry: 600)
        try shortened.disconnect5(0, [.sessionExpiry(1)])
        let ended = try broker.connect5("ended", expiry: 600)
        try ended.disconnect5(0, [.sessionExpiry(0)])
        #expect(try !hasSession(broker, "ended"))
        try broker.pass(milliseconds: 3_000)
        #expect(try hasSession(broker, "kept"))
        #expect(try hasSession(broker, "lengthened"))
        #expect(try !hasSession(broker, "shortened"))
    }

    @Test(
        "Trap 14: DISCONNECT does not lengthen a session beyond the broker's limit",
        arguments: Transport.all)
    func cappedDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let clock = try broker.connect5("clock")
        for name in ["early", "late"] {
            let client = try broker.connect5(name, expiry: 10)
            try client.disconnect5(0, [.sessionExpiry(.max)])
        }
        if transport == .memory { try clock.pass(milliseconds: 13 * 86_400_000) }
        #expect(try hasSession(broker, "early"))
        // Two weeks pass only on the clock in memory.
        guard transport == .memory else { return }
        try clock.pass(milliseconds: 2 * 86_400_000)
        #expect(try !hasSession(broker, "late"))
    }

    @Test(
        "Section 3.14.2.2.2: DISCONNECT with an expiry after CONNECT without one is a protocol error, and the will is published; trap 15",
        arguments: Transport.all)
    func expiryOfDisconnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let will = Packet5.Will(topic: topic)
        for expiry in [nil, UInt32(0)] {
            let client = try broker.connect5("client", expiry: expiry, will: will)
            try client.send5(.disconnect(0, [.sessionExpiry(5)]))
            try client.expectEnd5(0x82)
            try watcher.expect5(.publish(topic, "gone"))
        }
        // 0 after 0 changes nothing, and what was granted is of no matter.
        let zero = try broker.connect5("client", will: will)
        try zero.disconnect5(0, [.sessionExpiry(0)])
        let capped = try broker.connect5("client", expiry: .max, will: will)
        try capped.disconnect5(0, [.sessionExpiry(.max)])
        try watcher.expectNothing()
        #expect(try hasSession(broker, "client"))
    }

    @Test(
        "Section 4.1: a session of 3.1.1 goes on under 5.0, and back, with its subscriptions and messages",
        arguments: Transport.all)
    func bothVersions(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let properties: [Property5] = [.user("n", "v"), .contentType("c")]
        let old = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try old.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "one", qos: 1, properties)
        try publisher.publish5(topic, "two", qos: 2, properties)
        let new = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try new.expect5(
            .publish(topic, "one", qos: 1, 1, properties),
            .publish(topic, "two", qos: 2, 2, properties))
        try new.send5(.pubrec(2))
        try new.expect5(.pubrel(2))
        try new.subscribe5(broker.topic("b"), 0x0D, [.subscription(3)])
        try new.disconnect5()
        let back = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try back.expect(
            .publish(topic, "one", qos: .atLeastOnce, 1, isDuplicate: true), .pubrel(2))
        try back.send(.puback(1), .pubcomp(2))
        // The options of the subscription stay; an identifier has no place in 3.1.1.
        try publisher.publish5(broker.topic("b"), "three", qos: 1, properties)
        try back.expect(.publish(broker.topic("b"), "three", qos: .atLeastOnce, 3))
        try back.publish(broker.topic("b"), "own")
        try back.expectNothing()
    }
}
