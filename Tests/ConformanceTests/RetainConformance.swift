import HermesTesting
import MQTTCodec
import Testing

@Suite("3.3.1.3 RETAIN")
struct RetainConformance {
    /// All messages that a new subscription to a filter brings.
    private func fetch(
        _ broker: BrokerUnderTest, _ filter: String, _ qos: QoS = .exactlyOnce
    ) throws -> [PacketContent] {
        try broker.subscriber("fetcher", to: filter, qos).takeAll()
    }

    @Test(
        "MQTT-3.3.1-5: RETAIN 1 stores the message with its QoS, for later subscribers",
        arguments: Transport.all, QoS.allCases)
    func stores(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "former", qos: .atLeastOnce, retain: true)
        try publisher.publish(topic, "kept", qos: qos, retain: true)
        for _ in 0..<2 {
            for granted in QoS.allCases {
                #expect(
                    try fetch(broker, topic, granted)
                        == [.publish(topic, "kept", qos: min(qos, granted), 1, retain: true)])
            }
        }
    }

    @Test(
        "MQTT-3.3.1-6: a new subscription gets the last retained message of each matching topic",
        arguments: Transport.all)
    func newSubscription(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        for round in 1...2 {
            for rest in ["a", "a/b", "a/b/c", "a/x/c", "b", "", "a//c"] {
                try publisher.publish(
                    broker.topic(rest), "\(rest)\(round)", qos: .atLeastOnce, retain: true)
            }
        }
        let table: [(filter: String, topics: [String])] = [
            ("a", ["a"]), ("a/b", ["a/b"]), ("a/+", ["a/b"]),
            ("a/+/c", ["a/b/c", "a/x/c", "a//c"]),
            ("a/#", ["a", "a/b", "a/b/c", "a/x/c", "a//c"]), ("+", ["a", "b", ""]),
            ("#", ["a", "a/b", "a/b/c", "a/x/c", "b", "", "a//c"]), ("c", []),
            ("a/b/#", ["a/b", "a/b/c"]),
            ("+/+/c", ["a/b/c", "a/x/c", "a//c"]), ("a/", []), ("", [""]),
        ]
        for (filter, topics) in table {
            let packets = try fetch(broker, broker.topic(filter), .atMostOnce)
            #expect(packets.count == topics.count, "\(filter)")
            #expect(
                Set(packets)
                    == Set(topics.map { .publish(broker.topic($0), "\($0)2", retain: true) }),
                "\(filter)")
        }
        // Existing subscribers do not get them again.
        let established = try broker.subscriber("established", to: broker.topic("b"), .atMostOnce)
        try established.expect(.publish(broker.topic("b"), "b2", retain: true))
        try established.subscribe(broker.topic("c"), .atMostOnce)
        try established.expectNothing()
    }

    @Test(
        "MQTT-3.3.1-7: a QoS 0 message with RETAIN 1 replaces the retained one of any QoS",
        arguments: Transport.all, QoS.allCases)
    func atMostOnceReplaces(transport: Transport, former: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "former", qos: former, retain: true)
        try publisher.publish(topic, "new", qos: .atMostOnce, retain: true)
        #expect(try fetch(broker, topic) == [.publish(topic, "new", retain: true)])
    }

    @Test(
        "MQTT-3.3.1-8: RETAIN is 1 on messages sent because of a new subscription",
        arguments: Transport.all, QoS.allCases)
    func flagOfAFetch(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let publisher = try broker.connect("publisher")
        try publisher.publish(broker.topic("a"), "x", qos: qos, retain: true)
        for filter in [broker.topic("a"), broker.topic("+"), broker.topic("#")] {
            let client = try broker.subscriber(to: filter, .exactlyOnce)
            try client.expectBytes(
                RawPacket.publish(
                    firstByte: 0x31 | qos.rawValue << 1, topic: topic,
                    identifier: qos == .atMostOnce ? nil : 1, payload: [0x78]))
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.3.1-8: a fetched message keeps RETAIN 1 when it is delivered again",
        arguments: Transport.all)
    func flagOfARedelivery(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "x", qos: .exactlyOnce, retain: true)
        let client = try broker.subscriber("client", to: topic, .atLeastOnce, cleanSession: false)
        try client.expect(.publish(topic, "x", qos: .atLeastOnce, 1, retain: true))
        try client.finish()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expect(
            .publish(topic, "x", qos: .atLeastOnce, 1, isDuplicate: true, retain: true))
        try again.expectNothing()
    }

    @Test(
        "MQTT-3.3.1-9: RETAIN is 0 on messages to established subscriptions, at every QoS",
        arguments: Transport.all, QoS.allCases)
    func flagOfALiveDelivery(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let publisher = try broker.connect("publisher")
        for granted in QoS.allCases {
            let client = try broker.subscriber(
                "client\(granted)", to: broker.topic("a"), granted, cleanSession: false)
            if granted == .exactlyOnce { try client.disconnect() }
        }
        try publisher.publish(broker.topic("a"), "x", qos: qos, retain: true)
        let absent = try broker.connect(
            "client\(QoS.exactlyOnce)", cleanSession: false, sessionPresent: true)
        // The clients of this test in order: publisher, one per granted QoS, and a second one.
        for (client, granted) in [
            (broker.clients[1], QoS.atMostOnce), (broker.clients[2], .atLeastOnce),
            (absent, .exactlyOnce),
        ] where client !== absent || qos != .atMostOnce {
            let lower = min(qos, granted)
            try client.expectBytes(
                RawPacket.publish(
                    firstByte: 0x30 | lower.rawValue << 1, topic: topic,
                    identifier: lower == .atMostOnce ? nil : 1, payload: [0x78]))
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.3.1-10: an empty message with RETAIN 1 is delivered as usual, and clears the topic",
        arguments: Transport.all, QoS.allCases)
    func emptyClears(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber(to: topic, .exactlyOnce)
        try publisher.publish(topic, "kept", qos: .exactlyOnce, retain: true)
        try publisher.publish(broker.topic("b"), "other", retain: true)
        try client.expect(.publish(topic, "kept", qos: .exactlyOnce, 1, retain: false))
        try publisher.publish(topic, "", qos: qos, retain: true)
        let identifier: PacketIdentifier = 2
        try client.expect(.publish(topic, "", qos: qos, identifier, retain: false))
        #expect(try fetch(broker, topic).isEmpty)
        // Packets of this topic only.
        #expect(
            try fetch(broker, broker.topic("#"))
                == [.publish(broker.topic("b"), "other", retain: true)])
    }

    @Test(
        "MQTT-3.3.1-11: an empty message is never kept", arguments: Transport.all, QoS.allCases)
    func emptyIsNotKept(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "", qos: qos, retain: true)
        #expect(try fetch(broker, topic).isEmpty)
        try publisher.publish(topic, "kept", retain: true)
        try publisher.publish(topic, "", qos: qos, retain: true)
        try publisher.publish(topic, "", qos: qos, retain: true)
        #expect(try fetch(broker, broker.topic("+")).isEmpty)
        // The topic can be used again.
        try publisher.publish(topic, "again", retain: true)
        #expect(try fetch(broker, topic) == [.publish(topic, "again", retain: true)])
    }

    @Test(
        "MQTT-3.3.1-12: a message with RETAIN 0 stores nothing, replaces nothing, removes nothing",
        arguments: Transport.all, QoS.allCases)
    func withoutRetain(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        try publisher.publish(broker.topic("a"), "x", qos: qos, retain: false)
        #expect(try fetch(broker, broker.topic("#")).isEmpty)
        try publisher.publish(broker.topic("a"), "kept", qos: .atLeastOnce, retain: true)
        for payload in ["other", ""] {
            try publisher.publish(broker.topic("a"), payload, qos: qos, retain: false)
            #expect(
                try fetch(broker, broker.topic("#"))
                    == [.publish(broker.topic("a"), "kept", qos: .atLeastOnce, 1, retain: true)])
        }
    }
}
