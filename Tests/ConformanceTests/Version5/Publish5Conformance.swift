import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.3: PUBLISH")
struct Publish5Conformance {
    /// Everything that a server passes on unchanged.
    static let passedOn: [Property5] = [
        .payloadFormat(1), .contentType("text/plain; charset=utf-8"),
        .responseTopic("answers/\u{1F600}"), .correlation([0x00, 0xFF, 0x61]), .user("z", "1"),
        .user("a", "2"), .user("z", ""), .user("", ""), .user("a", "2"),
    ]

    @Test(
        "MQTT5-3.3.2-4, MQTT5-3.3.2-15, MQTT5-3.3.2-16, MQTT5-3.3.2-17, MQTT5-3.3.2-18, MQTT5-3.3.2-20: properties of a message are passed on unchanged, User Properties in their order",
        arguments: Transport.all, [UInt8(0), 1, 2])
    func passesOn(transport: Transport, qos: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2)
        let plain = try broker.subscriber("plain", to: topic, .atMostOnce)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "{}", qos: qos, Self.passedOn)
        try subscriber.expect5(.publish(topic, "{}", qos: qos, 1, Self.passedOn))
        try plain.expect(.publish(topic, "{}"))
        // One that has none has none.
        try publisher.publish5(topic, "", qos: qos)
        try subscriber.expect5(.publish(topic, "", qos: qos, 2))
        try plain.expect(.publish(topic, ""))
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-3.3.2-17, MQTT5-3.3.2-18, trap 58: properties wait with the message of an offline client, and with a retained one",
        arguments: Transport.all)
    func stored(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2, expiry: 60)
        try subscriber.finish()
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "one", qos: 1, retain: true, Self.passedOn)
        try publisher.publish5(topic, "two", qos: 2, Self.passedOn)
        let old = try broker.connect("old")
        try old.publish(topic, "three", qos: .atLeastOnce)
        let again = try broker.connect5(
            "subscriber", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(
            .publish(topic, "one", qos: 1, 1, Self.passedOn),
            .publish(topic, "two", qos: 2, 2, Self.passedOn),
            .publish(topic, "three", qos: 1, 3))
        let late = try broker.subscriber5("late", to: topic, 1)
        try late.expect5(.publish(topic, "one", qos: 1, 1, retain: true, Self.passedOn))
        try late.expectNothing()
        // What was in flight keeps them too.
        try again.finish()
        let third = try broker.connect5(
            "subscriber", cleanStart: false, expiry: 60, sessionPresent: true)
        try third.expect5(
            .publish(topic, "one", qos: 1, 1, isDuplicate: true, Self.passedOn),
            .publish(topic, "two", qos: 2, 2, isDuplicate: true, Self.passedOn),
            .publish(topic, "three", qos: 1, 3, isDuplicate: true))
        try third.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-1, MQTT5-3.3.1-3: DUP of a publisher is not passed on; a re-delivery has it",
        arguments: Transport.all, [UInt8(1), 2])
    func duplicateFlag(transport: Transport, qos: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let subscriber = try broker.subscriber5(to: topic, 2, expiry: 60)
        let publisher = try broker.connect5("publisher")
        try publisher.send5(.publish(topic, "x", qos: qos, 9, isDuplicate: true))
        try publisher.expect5(qos == 1 ? .puback(9) : .pubrec(9))
        try subscriber.expect5(.publish(topic, "x", qos: qos, 1))
        try subscriber.finish()
        let again = try broker.connect5(
            "subscriber", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(.publish(topic, "x", qos: qos, 1, isDuplicate: true))
        try again.expectNothing()
    }

    @Test(
        "MQTT5-3.3.1-2, MQTT5-3.3.1-4: DUP at QoS 0, and QoS 3, are malformed",
        arguments: Transport.all)
    func flags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        for packet in [
            Packet5.publish(topic, "x", isDuplicate: true), .publish(topic, "x", qos: 3),
            .publish(topic, "x", qos: 3, isDuplicate: true, retain: true),
        ] {
            let client = try broker.connect5("client")
            try client.send5(packet)
            try client.expectEnd5(0x81)
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.3.2-2, MQTT5-4.7.0-1: a topic name with a wildcard ends the connection",
        arguments: Transport.all)
    func wildcards(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for name in ["#", "+", "a/#", "a/+/b", "a+", "#a"] {
            let client = try broker.connect5("client")
            try client.send5(.publish(name, "x"))
            try client.expectEnd5(0x90)
            let other = try broker.open()
            try other.send5(broker.connectPacket5("other", will: Packet5.Will(topic: name)))
            try other.expectRefused5(0x90)
        }
    }

    @Test(
        "MQTT5-3.3.2-14: a response topic with a wildcard is no valid one",
        arguments: Transport.all)
    func responseTopic(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for name in ["#", "a/+", "a/#/b"] {
            let client = try broker.connect5("client")
            try client.send5(.publish(broker.topic("a"), "x", [.responseTopic(name)]))
            try client.expectEnd5(0x82)
        }
    }

    @Test(
        "MQTT5-3.3.2-3: a delivery has the topic name of the message, which its filter matches",
        arguments: Transport.all)
    func topicName(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let subscriber = try broker.subscriber5(to: broker.topic("+/b/#"), 0)
        let publisher = try broker.connect5("publisher")
        let names = ["a/b", "a/b/c", "/b", "a/b/"].map { broker.topic($0) }
        for name in names {
            try publisher.publish5(name, "x")
            try subscriber.expect5(.publish(name, "x"))
        }
        try publisher.publish5(broker.topic("a/c"), "x")
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-3.3.4-6, trap 44: a Subscription Identifier in a client's PUBLISH is a protocol error",
        arguments: Transport.all)
    func subscriptionIdentifierOfAClient(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        for value in [1, 268_435_455] {
            let client = try broker.connect5("client")
            try client.send5(.publish(topic, "x", [.subscription(value)]))
            try client.expectEnd5(0x82)
        }
        try watcher.expectNothing()
    }

    // MARK: Topic aliases

    @Test(
        "MQTT5-3.3.2-12, trap 39, trap 41: every alias up to the announced maximum stands for its newest topic, and goes no further",
        arguments: Transport.all)
    func aliases(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let subscriber = try broker.subscriber5(to: broker.topic("#"), 1)
        let client = try broker.connect5("client")
        let maximum = UInt16(try #require(client.connack?.property(0x22)).number)
        for alias in 1...maximum {
            let topic = broker.topic("t\(alias)")
            try client.send5(.publish(topic, "set", [.alias(alias)]))
            try subscriber.expect5(.publish(topic, "set"))
        }
        for (count, alias) in (1...maximum).reversed().enumerated() {
            let identifier = UInt16(count + 1)
            try client.send5(
                .publish("", "used", qos: 1, alias, [.user("n", "v"), .alias(alias)]))
            try client.expect5(.puback(alias))
            try subscriber.expect5(
                .publish(
                    broker.topic("t\(alias)"), "used", qos: 1, identifier, [.user("n", "v")]))
            try subscriber.send5(.puback(identifier))
        }
        // An alias that is set again stands for the new topic.
        try client.send5(
            .publish(broker.topic("other"), "set", [.alias(1)]), .publish("", "used", [.alias(1)]))
        try subscriber.expect5(
            .publish(broker.topic("other"), "set"), .publish(broker.topic("other"), "used"))
        try subscriber.expectNothing()
    }

    @Test(
        "MQTT5-3.3.2-8, MQTT5-3.3.2-9, MQTT5-3.2.2-17: alias 0 and aliases above the maximum are invalid",
        arguments: Transport.all)
    func invalidAliases(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        for alias in [UInt16(0), 17, 0xFFFF] {
            let client = try broker.connect5("client")
            try client.send5(.publish(topic, "x", [.alias(alias)]))
            try client.expectEnd5(0x94)
        }
        try watcher.expectNothing()
    }

    @Test(
        "Section 3.3.2.3.4: an empty topic with no alias, or with one that is not set, is a protocol error; trap 43",
        arguments: Transport.all)
    func unknownAlias(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for properties in [[], [.alias(1)], [.alias(16)]] as [[Property5]] {
            let client = try broker.connect5("client")
            try client.send5(.publish("", "x", properties))
            try client.expectEnd5(0x82)
        }
    }

    @Test(
        "MQTT5-3.3.2-7, trap 40: aliases belong to one connection and end with it",
        arguments: Transport.all)
    func aliasesOfAConnection(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let first = try broker.connect5("client", expiry: 60)
        let other = try broker.connect5("other")
        try first.publish5(broker.topic("a"), "x", [.alias(1)])
        try other.send5(.publish("", "x", [.alias(1)]))
        try other.expectEnd5(0x82)
        try first.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.send5(.publish("", "x", [.alias(1)]))
        try again.expectEnd5(0x82)
    }

    @Test(
        "MQTT5-3.1.2-26, MQTT5-3.1.2-27, MQTT5-3.3.2-11, trap 38, trap 42: the broker sends no alias beyond the client's maximum, and every other property with those that it sends",
        arguments: Transport.all)
    func aliasesOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect5("publisher")
        for (maximum, properties) in [(0, []), (0, [.aliasMaximum(0)]), (2, [.aliasMaximum(2)])]
            as [(Int, [Property5])]
        {
            let subscriber = try broker.connect5("subscriber", properties)
            try subscriber.subscribe5(broker.topic("#"), 0)
            var names: [Int: [UInt8]] = [:]
            for number in [1, 1, 2, 3, 4, 1, 4, 4] {
                let topic = broker.topic("a\(number)")
                try publisher.publish5(topic, "x", Self.passedOn)
                let packet = try #require(try subscriber.next5()).plain
                var name = Array(packet.header.dropFirst(2))
                if let alias = packet.property(0x23)?.number {
                    #expect((1...max(1, maximum)).contains(alias) && maximum > 0)
                    if name.isEmpty { name = names[alias] ?? [] } else { names[alias] = name }
                }
                #expect(name == Array(topic.utf8))
                #expect(
                    packet.properties.filter { $0.identifier != 0x23 }
                        == Packet5.publish("", "", Self.passedOn).plain.properties)
            }
        }
    }
}
