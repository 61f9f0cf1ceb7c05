import HermesTesting
import Testing

/// A way in which a connection ends, and what the broker says first.
enum ConnectionEnd5: CaseIterable, Sendable, CustomTestStringConvertible {
    case peerCloses, peerResets, keepAlive, takeOver, disconnectWithWill, malformedPacket,
        protocolError, secondConnect, undefinedCode, otherFailure

    var testDescription: String { "\(self)" }

    /// Ends the connection of the broker's client `name`, whose keep alive is 1 s.
    func end(_ client: Client, _ name: String, of broker: BrokerUnderTest) throws {
        switch self {
        case .peerCloses: try client.finish()
        case .peerResets: client.reset()
        case .keepAlive: try broker.pass(milliseconds: 1_800)
        case .takeOver: _ = try broker.connect5(name, cleanStart: false, sessionPresent: false)
        case .disconnectWithWill: try client.send5(.disconnect(0x04))
        case .malformedPacket: try client.send(wire: "36 06 00 01 61 00 01 00")
        case .protocolError: try client.send5(.publish("a", "", [.subscription(1)]))
        case .secondConnect: try client.send5(broker.connectPacket5(name))
        case .undefinedCode: try client.send5(.disconnect(0xFF))
        case .otherFailure: try client.send5(.disconnect(0x80))
        }
    }
}

@Suite("MQTT 5.0, 3.1.2.5: the will")
struct Will5Conformance {
    @Test(
        "MQTT5-3.1.2-7, MQTT5-3.1.2-8, MQTT5-3.1.2-10, MQTT5-3.14.2-1, trap 3, trap 4: the will is published, once, by every end but DISCONNECT 0x00",
        arguments: Transport.all, ConnectionEnd5.allCases)
    func publishedByEveryEnd(transport: Transport, end: ConnectionEnd5) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 2)
        let client = try broker.connect5(
            "client", keepAlive: 1, will: Packet5.Will(topic: topic, qos: 1))
        try watcher.expectNothing()
        try end.end(client, "client", of: broker)
        try watcher.expect5(.publish(topic, "gone", qos: 1, 1))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.14.4-3, MQTT5-3.1.2-10: DISCONNECT 0x00, in each of its forms, drops the will; trap 64",
        arguments: Transport.all)
    func dropped(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let forms: [[UInt8]] = [
            [0xE0, 0x00], [0xE0, 0x01, 0x00], [0xE0, 0x02, 0x00, 0x00],
            Packet5.disconnect(0, [.reason("bye"), .user("n", "v"), .sessionExpiry(5)]).bytes,
        ]
        for form in forms {
            let client = try broker.connect5(
                "client", expiry: 5, will: Packet5.Will(topic: topic))
            try client.send(bytes: form)
            try client.expectClosed()
        }
        try watcher.expectNothing()
        let last = try broker.connect5("client", cleanStart: false, sessionPresent: true)
        try last.finish()
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-14, MQTT5-3.1.2-15: a will is retained if it says so, and replaces nothing otherwise",
        arguments: Transport.all)
    func retained(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "former", retain: true)
        for (retain, kept) in [(false, "former"), (true, "gone")] {
            let client = try broker.connect5(
                "client", will: Packet5.Will(topic: topic, retain: retain))
            try client.finish()
            let late = try broker.subscriber5("late", to: topic, 0)
            try late.expect5(.publish(topic, kept, retain: true))
            try late.expectNothing()
        }
    }

    @Test(
        "MQTT5-3.1.3-10, trap 8, trap 9: the will's properties are those of its PUBLISH, in their order, but for the delay",
        arguments: Transport.all, [UInt32(0), 1])
    func properties(transport: Transport, delay: UInt32) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let properties: [Property5] = [
            .payloadFormat(1), .contentType("text/plain"), .responseTopic("answers/here"),
            .correlation([0, 1, 0xFF]), .user("b", "1"), .user("a", "2"), .user("b", "3"),
        ]
        let client = try broker.connect5(
            "client", expiry: 60,
            will: Packet5.Will(topic: topic, properties: [.willDelay(delay)] + properties))
        try client.finish()
        if delay > 0 { try broker.pass(milliseconds: 1_500) }
        try watcher.expect5(.publish(topic, "gone", properties))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-8: a delayed will is published when its delay is over, and not before",
        arguments: Transport.all)
    func delayed(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5(
            "client", expiry: 60, will: Packet5.Will(topic: topic, properties: [.willDelay(2)]))
        try client.finish()
        try watcher.expectNothing()
        try broker.pass(milliseconds: 1_000)
        try watcher.expectNothing()
        try broker.pass(milliseconds: 1_500)
        try watcher.expect5(.publish(topic, "gone"))
        try watcher.expectNothing()
        // It is used up.
        let again = try broker.connect5("client", cleanStart: false, sessionPresent: true)
        try again.finish()
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-8, trap 1: a will whose delay is longer than the session is published at the session's end",
        arguments: Transport.all)
    func delayBeyondTheSession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5(
            "client", expiry: 1,
            will: Packet5.Will(topic: topic, properties: [.willDelay(3_600)]))
        try client.finish()
        try watcher.expectNothing()
        try broker.pass(milliseconds: 3_000)
        try watcher.expect5(.publish(topic, "gone"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-8, trap 2: a session without expiry ends with its connection, and so does the delay",
        arguments: Transport.all)
    func delayWithoutASession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let will = Packet5.Will(topic: topic, properties: [.willDelay(3_600)])
        let first = try broker.connect5("client", will: will)
        try first.send5(.disconnect(0x04))
        try watcher.expect5(.publish(topic, "gone"))
        let second = try broker.connect5("client", will: will)
        try second.finish()
        try watcher.expect5(.publish(topic, "gone"))
        // DISCONNECT may end the session too.
        let third = try broker.connect5("client", expiry: 60, will: will)
        try third.send5(.disconnect(0x04, [.sessionExpiry(0)]))
        try watcher.expect5(.publish(topic, "gone"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.3-9, trap 7: a client that comes back within the delay takes the will back, and gets its messages",
        arguments: Transport.all)
    func cancelled(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let messages = broker.topic("messages")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let will = Packet5.Will(topic: topic, properties: [.willDelay(1)])
        let client = try broker.connect5("client", expiry: 60, will: will)
        try client.subscribe5(messages, 1)
        try client.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(messages, "waiting", qos: 1)
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(.publish(messages, "waiting", qos: 1, 1))
        try again.send5(.puback(1))
        try publisher.publish5(messages, "live", qos: 1)
        try again.expect5(.publish(messages, "live", qos: 1, 2))
        try again.send5(.puback(2))
        try broker.pass(milliseconds: 2_000)
        try watcher.expectNothing()
        // A take-over within the delay cancels it too.
        let third = try broker.connect5(
            "client", cleanStart: false, expiry: 60, will: will, sessionPresent: true)
        try again.expectEnd5(0x8E)
        let fourth = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try third.expectEnd5(0x8E)
        try broker.pass(milliseconds: 2_000)
        try watcher.expectNothing()
        try fourth.finish()
    }

    @Test(
        "MQTT5-3.1.2-4, trap 5: Clean Start 1 ends the session, so that its delayed will is published at once",
        arguments: Transport.all, [false, true])
    func cleanStart(transport: Transport, isTakeOver: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5(
            "client", expiry: 60,
            will: Packet5.Will(topic: topic, properties: [.willDelay(3_600)]))
        if !isTakeOver { try client.finish() }
        try watcher.expectNothing()
        _ = try broker.connect5("client", expiry: 60)
        try watcher.expect5(.publish(topic, "gone"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-4.1.0-2, trap 6: a session without expiry is not inherited by a take-over, and its will is published",
        arguments: Transport.all)
    func takeOverWithoutExpiry(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let messages = broker.topic("messages")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let old = try broker.connect5(
            "client", will: Packet5.Will(topic: topic, properties: [.willDelay(3_600)]))
        try old.subscribe5(messages, 1)
        let new = try broker.connect5("client", cleanStart: false, expiry: 60)
        try old.expectEnd5(0x8E)
        try watcher.expect5(.publish(topic, "gone"))
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(messages, "x", qos: 1)
        try new.expectNothing()
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-7: the will's own expiry counts from its publication",
        arguments: Transport.all)
    func expiryOfAWill(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.connect5(
            "client", expiry: 60,
            will: Packet5.Will(topic: topic, properties: [.willDelay(2), .messageExpiry(2)]))
        try client.finish()
        try broker.pass(milliseconds: 2_600)
        try watcher.expect5(.publish(topic, "gone", [.messageExpiry(2)]))
        try watcher.expectNothing()
    }
}
