import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.3.2.3.3: Message Expiry Interval")
struct Expiry5Conformance {
    /// The next packet, which is `expected` but for an expiry in `seconds`; a message that expired may
    /// have used up a packet identifier.
    private func expect(
        _ client: Client, _ expected: Packet5, expiringIn seconds: ClosedRange<Int>,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let packet = try #require(try client.next5(), sourceLocation: location)
        let expiry = try #require(
            packet.property(0x02), "no expiry: \(packet)", sourceLocation: location)
        #expect(seconds.contains(expiry.number), "\(expiry.number) s", sourceLocation: location)
        var rest = packet
        rest.properties.removeAll { $0.identifier == 0x02 }
        if expected.first & 0x06 != 0 {
            rest.header.replaceSubrange((rest.header.count - 2)..., with: expected.header.suffix(2))
        }
        #expect(rest.plain == expected.plain, sourceLocation: location)
    }

    @Test(
        "MQTT5-3.3.2-6, trap 22: what is sent is what is left: live, of waiting messages and of retained ones",
        arguments: Transport.all)
    func countsDown(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let live = try broker.subscriber5("live", to: topic, 0)
        let absent = try broker.subscriber5("absent", to: topic, 1, expiry: 600)
        try absent.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1, retain: true, [.messageExpiry(100)])
        try expect(live, .publish(topic, "x"), expiringIn: 98...100)
        let passed = transport == .memory ? 40 : 2
        try broker.pass(milliseconds: passed * 1_000 + 100)
        let range = transport == .memory ? 59...60 : 80...98
        let again = try broker.connect5(
            "absent", cleanStart: false, expiry: 600, sessionPresent: true)
        try expect(again, .publish(topic, "x", qos: 1, 1), expiringIn: range)
        let late = try broker.subscriber5("late", to: topic, 0)
        try expect(late, .publish(topic, "x", retain: true), expiringIn: range)
        try late.expectNothing()
    }

    @Test(
        "MQTT5-3.3.2-5, trap 25: what expires before its delivery began is not delivered, and takes no place",
        arguments: Transport.all)
    func expires(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let absent = try broker.subscriber5("absent", to: topic, 2, expiry: 600)
        try absent.finish()
        let publisher = try broker.connect5("publisher")
        for qos in UInt8(1)...2 {
            try publisher.publish5(
                topic, "short", qos: qos, retain: true, [.messageExpiry(1)])
            try publisher.publish5(topic, "long \(qos)", qos: qos, [.messageExpiry(100)])
        }
        try broker.pass(milliseconds: 3_000)
        let again = try broker.connect5(
            "absent", cleanStart: false, expiry: 600, sessionPresent: true)
        try expect(again, .publish(topic, "long 1", qos: 1, 1), expiringIn: 70...98)
        try expect(again, .publish(topic, "long 2", qos: 2, 2), expiringIn: 70...98)
        try again.expectNothing()
        // The retained message has expired too.
        let late = try broker.subscriber5("late", to: topic, 2)
        try late.expectNothing()
    }

    @Test(
        "MQTT5-3.3.2-6, trap 26: with less than a second left the property is still there",
        arguments: Transport.all)
    func lastSecond(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let absent = try broker.subscriber5("absent", to: topic, 1, expiry: 600)
        try absent.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1, [.messageExpiry(2)])
        try broker.pass(milliseconds: transport == .memory ? 1_700 : 1_100)
        let again = try broker.connect5(
            "absent", cleanStart: false, expiry: 600, sessionPresent: true)
        try expect(again, .publish(topic, "x", qos: 1, 1), expiringIn: 1...1)
        try again.expectNothing()
    }

    @Test(
        "Trap 27: a message with interval 0 is neither kept nor queued",
        arguments: Transport.all)
    func zero(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let absent = try broker.subscriber5("absent", to: topic, 1, expiry: 600)
        try absent.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1, retain: true, [.messageExpiry(0)])
        try broker.pass(milliseconds: 1_500)
        let again = try broker.connect5(
            "absent", cleanStart: false, expiry: 600, sessionPresent: true)
        try again.expectNothing()
        let late = try broker.subscriber5("late", to: topic, 0)
        try late.expectNothing()
    }

    @Test(
        "MQTT5-4.3.3-7, MQTT5-4.3.3-13, trap 23: a QoS 2 exchange that has begun is finished although the message has expired",
        arguments: Transport.all)
    func finishesExchange(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2, expiry: 600)
        let publisher = try broker.connect5("publisher")
        // Towards the broker.
        try publisher.send5(.publish(topic, "x", qos: 2, 5, [.messageExpiry(1)]))
        try publisher.expect5(.pubrec(5))
        try expect(subscriber, .publish(topic, "x", qos: 2, 1), expiringIn: 1...1)
        try broker.pass(milliseconds: 2_500)
        try publisher.send5(.pubrel(5))
        try publisher.expect5(.pubcomp(5))
        // Towards the subscriber.
        try subscriber.send5(.pubrec(1))
        try subscriber.expect5(.pubrel(1))
        try subscriber.send5(.pubcomp(1))
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-4.3.3-7, MQTT5-4.4.0-1, trap 24: what was sent before its end is sent again after it",
        arguments: Transport.all)
    func resends(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2, expiry: 600)
        let publisher = try broker.connect5("publisher")
        for qos in UInt8(1)...2 {
            try publisher.publish5(topic, "\(qos)", qos: qos, [.messageExpiry(1)])
            try expect(
                subscriber, .publish(topic, "\(qos)", qos: qos, UInt16(qos)), expiringIn: 1...1)
        }
        try subscriber.finish()
        try broker.pass(milliseconds: 2_500)
        let again = try broker.connect5(
            "subscriber", cleanStart: false, expiry: 600, sessionPresent: true)
        for qos in UInt8(1)...2 {
            let packet = try #require(try again.next5())
            #expect(packet.first == 0x38 | qos << 1)
            #expect(packet.payload == Array("\(qos)".utf8))
        }
        try again.expectNothing()
    }
}
