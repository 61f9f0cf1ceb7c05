import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.8 to 3.11: SUBSCRIBE, UNSUBSCRIBE and their answers")
struct Subscribe5Conformance {
    @Test(
        "MQTT5-3.8.3-2, MQTT5-3.10.3-2: a request without a filter is a protocol error",
        arguments: Transport.all)
    func noFilter(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for packet in [Packet5.subscribe(1, [:]), .unsubscribe(1, [])] {
            let client = try broker.connect5("client")
            try client.send5(packet)
            try client.expectEnd5(0x82)
        }
    }

    @Test(
        "MQTT5-3.8.3-5, trap 55: reserved option bits are malformed; QoS 3 and Retain Handling 3 are protocol errors",
        arguments: Transport.all)
    func options(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for (options, code) in [
            (UInt8(0x40), UInt8(0x81)), (0x80, 0x81), (0xC0, 0x81), (0x41, 0x81), (0x03, 0x82),
            (0x07, 0x82), (0x30, 0x82), (0x31, 0x82),
        ] {
            let client = try broker.connect5("client")
            try client.send5(.subscribe(1, [broker.topic("a"): 0, broker.topic("b"): options]))
            try client.expectEnd5(code)
        }
    }

    @Test(
        "MQTT5-3.8.3-3: No Local: a client gets no message of its own, whatever its connection; others do",
        arguments: Transport.all)
    func noLocal(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber5("client", to: topic, 0x06, expiry: 60)
        let plain = try broker.subscriber5("plain", to: topic, 0x02)
        for qos in UInt8(0)...2 {
            try client.publish5(topic, "own", qos: qos)
            try plain.expect5(.publish(topic, "own", qos: qos, UInt16(max(1, qos))))
        }
        try plain.publish5(topic, "foreign", qos: 1)
        try client.expect5(.publish(topic, "foreign", qos: 1, 1))
        try client.expectNothing()
        // Only that subscription holds it back.
        try client.subscribe5(broker.topic("+"), 0)
        try client.publish5(topic, "own")
        try client.expect5(.publish(topic, "own"))
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.8.3-4, trap 48: No Local on a shared subscription is a protocol error",
        arguments: Transport.all)
    func noLocalShared(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        try client.send5(.subscribe(1, ["$share/g/\(broker.topic("a"))": 0x04]))
        try client.expectEnd5(0x82)
    }

    @Test(
        "MQTT5-3.8.4-3, MQTT5-3.8.4-8, trap 46: the same filter again replaces the subscription, with options and identifier",
        arguments: Transport.all)
    func replaces(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.connect5("client")
        let publisher = try broker.connect5("publisher")
        try client.subscribe5(topic, 0x01, [.subscription(7)])
        try publisher.publish5(topic, "1", qos: 2)
        try client.expect5(.publish(topic, "1", qos: 1, 1, [.subscription(7)]))
        try client.subscribe5(topic, 0x0A, [.subscription(300)])
        try publisher.publish5(topic, "2", qos: 2, retain: true)
        try client.expect5(.publish(topic, "2", qos: 2, 2, retain: true, [.subscription(300)]))
        try client.subscribe5(topic, 0x24)
        try publisher.publish5(topic, "3", qos: 2)
        try client.expect5(.publish(topic, "3"))
        try client.publish5(topic, "own")
        try client.expectNothing()
        try client.subscribe5(topic, 0x20)
        try client.publish5(topic, "own")
        try client.expect5(.publish(topic, "own"))
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.8.4-5, MQTT5-3.8.4-6, MQTT5-3.8.4-7, MQTT5-3.9.3-1, MQTT5-3.9.3-2, trap 53: each filter of a SUBSCRIBE has its own code, in order",
        arguments: Transport.all)
    func codes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let deep = broker.topic(String(repeating: "/", count: 200))
        let client = try broker.connect5("client")
        try client.send5(
            .subscribe(
                9,
                [
                    broker.topic("a"): 2, "a/#/b": 0, broker.topic("b"): 0, "a+": 1, "": 1, deep: 1,
                    "$share/g": 1, "$share//a": 1, broker.topic("c"): 1,
                ]))
        try client.expect5(
            .suback(9, [0x02, 0x8F, 0x00, 0x8F, 0x8F, 0x8F, 0x8F, 0x8F, 0x01]))
        for name in ["a", "b", "c"] { try client.publish5(broker.topic(name), name, qos: 1) }
        try client.expect5(
            .publish(broker.topic("a"), "a", qos: 1, 1), .publish(broker.topic("b"), "b"),
            .publish(broker.topic("c"), "c", qos: 1, 2))
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.8.4-8: a message is delivered at the lower of its QoS and the granted one",
        arguments: Transport.all)
    func lowerQoS(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect5("publisher")
        for granted in UInt8(0)...2 {
            let topic = broker.topic("\(granted)")
            let client = try broker.subscriber5("client", to: topic, granted)
            var identifier: UInt16 = 0
            for qos in UInt8(0)...2 {
                try publisher.publish5(topic, "x", qos: qos)
                if min(qos, granted) > 0 { identifier += 1 }
                try client.expect5(.publish(topic, "x", qos: min(qos, granted), identifier))
            }
            try client.expectNothing()
        }
    }

    // MARK: Subscription Identifiers

    @Test(
        "MQTT5-3.3.4-3, trap 45: identifiers from 1 to 268,435,455 come with the messages of their subscription; 0 is a protocol error",
        arguments: Transport.all)
    func identifierValues(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        for value in [1, 127, 128, 16_383, 16_384, 2_097_152, 268_435_455] {
            let client = try broker.connect5("client")
            try client.subscribe5(topic, 0, [.subscription(value)])
            try publisher.publish5(topic, "x")
            try client.expect5(.publish(topic, "x", [.subscription(value)]))
            try client.expectNothing()
        }
        let client = try broker.connect5("client")
        try client.send5(.subscribe(1, [topic: 0], [.subscription(0)]))
        try client.expectEnd5(0x82)
    }

    @Test(
        "MQTT5-3.3.4-2, MQTT5-3.3.4-3, MQTT5-3.3.4-4, MQTT5-3.3.4-5: overlapping subscriptions: the highest QoS, and every identifier",
        arguments: Transport.all)
    func overlap(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a/b")
        let client = try broker.connect5("client")
        try client.subscribe5(broker.topic("#"), 0, [.subscription(1)])
        try client.subscribe5(broker.topic("a/+"), 2, [.subscription(2)])
        try client.subscribe5(topic, 1)
        try client.subscribe5(broker.topic("+/b"), 1, [.subscription(200)])
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 2)
        let packets = try client.takeAll5()
        let identifiers = packets.flatMap(\.properties).map(\.bytes)
        #expect(
            Set(identifiers)
                == Set([1, 2, 200].map { Property5.subscription($0).bytes }))
        #expect(identifiers.count == 3)
        #expect(packets.map(\.first).contains(0x34))
        if packets.count == 1 { #expect(packets[0].first == 0x34) }
    }

    @Test(
        "MQTT5-3.3.4-3, trap 47: identifiers come with retained, shared and waiting messages, and never another client's",
        arguments: Transport.all)
    func identifiersEverywhere(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "kept", retain: true)
        let other = try broker.connect5("other")
        try other.subscribe5(topic, 0x20, [.subscription(99)])
        let client = try broker.connect5("client", expiry: 60)
        try client.subscribe5(topic, 1, [.subscription(5)])
        try client.expect5(.publish(topic, "kept", retain: true, [.subscription(5)]))
        try client.unsubscribe5(topic)
        try client.subscribe5("$share/g/\(topic)", 1, [.subscription(6)])
        try publisher.publish5(topic, "shared")
        try client.expect5(.publish(topic, "shared", [.subscription(6)]))
        try client.unsubscribe5("$share/g/\(topic)")
        try client.subscribe5(topic, 0x21, [.subscription(7)])
        try client.finish()
        try publisher.publish5(topic, "waiting", qos: 1)
        for isDuplicate in [false, true] {
            let again = try broker.connect5(
                "client", cleanStart: false, expiry: 60, sessionPresent: true)
            try again.expect5(
                .publish(
                    topic, "waiting", qos: 1, 1, isDuplicate: isDuplicate, [.subscription(7)]))
            try again.expectNothing()
            try again.finish()
        }
        try other.expect5(
            .publish(topic, "shared", [.subscription(99)]),
            .publish(topic, "waiting", [.subscription(99)]))
        try other.expectNothing()
    }

    // MARK: UNSUBSCRIBE

    @Test(
        "MQTT5-3.10.4-1, MQTT5-3.10.4-2, MQTT5-3.10.4-5, MQTT5-3.10.4-6, MQTT5-3.11.3-1, MQTT5-3.11.3-2, trap 52, trap 55: one UNSUBACK with a code for each filter, in order; filters compare literally",
        arguments: Transport.all)
    func unsubscribe(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        try client.subscribe5(broker.topic("a"), 0)
        try client.subscribe5(broker.topic("b/#"), 0)
        let names = [
            broker.topic("+"), broker.topic("a"), "a/#/b", broker.topic("A"), broker.topic("b/#"),
            broker.topic("a"),
        ]
        try client.send5(.unsubscribe(3, names))
        try client.expectBytes([0xB0, 0x09, 0, 3, 0, 0x11, 0, 0x8F, 0x11, 0, 0x11])
        for name in ["a", "b", "b/c"] { try client.publish5(broker.topic(name), "x", qos: 1) }
        try client.expectNothing()
    }

    @Test(
        "MQTT5-3.10.4-3: deliveries that have begun are finished after UNSUBSCRIBE",
        arguments: Transport.all)
    func finishesDeliveries(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber5("client", to: topic, 2, expiry: 60)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "one", qos: 1)
        try publisher.publish5(topic, "two", qos: 2)
        try client.expect5(
            .publish(topic, "one", qos: 1, 1), .publish(topic, "two", qos: 2, 2))
        try client.unsubscribe5(topic)
        try publisher.publish5(topic, "three", qos: 2)
        try client.send5(.pubrec(2))
        try client.expect5(.pubrel(2))
        try client.finish()
        let again = try broker.connect5(
            "client", cleanStart: false, expiry: 60, sessionPresent: true)
        try again.expect5(.publish(topic, "one", qos: 1, 1, isDuplicate: true), .pubrel(2))
        try again.send5(.puback(1), .pubcomp(2))
        try again.expectNothing()
    }
}
