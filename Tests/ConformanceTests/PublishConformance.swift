import HermesTesting
import MQTTCodec
import Testing

@Suite("3.3 PUBLISH")
struct PublishConformance {
    @Test(
        "MQTT-3.3.1-1: a re-delivery has DUP 1 and is otherwise identical", arguments: Transport.all
    )
    func duplicateFlagOfARedelivery(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let bytes = Array(topic.utf8)
        let first = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "1", qos: .atLeastOnce)
        try publisher.publish(topic, "2", qos: .exactlyOnce)
        let packets = [(0x32, 1), (0x34, 2)] as [(UInt8, UInt16)]
        for (firstByte, number) in packets {
            try first.expectBytes(
                RawPacket.publish(
                    firstByte: firstByte, topic: bytes, identifier: number,
                    payload: [0x30 + UInt8(number)]))
        }
        try first.finish()
        // Each time until it is acknowledged.
        for _ in 0..<3 {
            let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
            for (firstByte, number) in packets {
                try again.expectBytes(
                    RawPacket.publish(
                        firstByte: firstByte | 0x08, topic: bytes, identifier: number,
                        payload: [0x30 + UInt8(number)]))
            }
            try again.expectNothing()
            try again.finish()
        }
    }

    @Test(
        "MQTT-3.3.1-2: DUP is 0 on every QoS 0 message, also from a publisher's re-delivery",
        arguments: Transport.all)
    func noDuplicateFlagAtQoS0(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let client = try broker.subscriber(to: broker.topic("a"), .atMostOnce)
        let publisher = try broker.connect("publisher")
        for firstByte: UInt8 in [0x3A, 0x3B, 0x3C, 0x3D] {
            try publisher.send(
                bytes: RawPacket.publish(
                    firstByte: firstByte, topic: topic, identifier: 7, payload: [firstByte]))
            try client.expectBytes(RawPacket.publish(topic: topic, payload: [firstByte]))
            try publisher.send(.pubrel(7))
        }
        // A peer that sets it breaks the rule.
        for firstByte: UInt8 in [0x38, 0x39] {
            let violator = try broker.connect("violator")
            try violator.send(bytes: RawPacket.publish(firstByte: firstByte, topic: topic))
            try violator.expectClosed()
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.3.1-3: DUP of the publisher is not passed on", arguments: Transport.all,
        [QoS.atLeastOnce, .exactlyOnce])
    func duplicateFlagIsNotPassedOn(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber(to: topic, .exactlyOnce, cleanSession: false)
        let clean = try broker.subscriber("clean", to: topic, .exactlyOnce)
        let publisher = try broker.connect("publisher")
        try publisher.send(.publish(topic, "x", qos: qos, 7, isDuplicate: true))
        for receiver in [client, clean] {
            try receiver.expect(.publish(topic, "x", qos: qos, 1, isDuplicate: false))
        }
        // Nor for an offline client: its first delivery is not a re-delivery.
        try client.acknowledge(1, qos)
        try client.disconnect()
        try publisher.send(.publish(topic, "y", qos: qos, 8, isDuplicate: true))
        try publisher.fence()
        let again = try broker.connect("subscriber", cleanSession: false, sessionPresent: true)
        try again.expect(.publish(topic, "y", qos: qos, 2, isDuplicate: false))
        // Nor for a new subscriber to a retained message.
        try publisher.send(.publish(topic, "z", qos: qos, 9, isDuplicate: true, retain: true))
        try again.expect(.publish(topic, "z", qos: qos, 3, isDuplicate: false))
        let late = try broker.subscriber("late", to: topic, .exactlyOnce)
        try late.expect(.publish(topic, "z", qos: qos, 1, isDuplicate: false, retain: true))
    }

    @Test(
        "MQTT-3.3.1-4: QoS 3 closes the connection, and the message is not delivered",
        arguments: Transport.all, [0x36, 0x37, 0x3E, 0x3F] as [UInt8])
    func qosThree(transport: Transport, firstByte: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client")
        try client.send(
            bytes: RawPacket.publish(
                firstByte: firstByte, topic: Array(topic.utf8), identifier: 1, payload: [1]))
        try client.expectClosed()
        try watcher.expectNothing()
        let late = try broker.subscriber("late", to: topic, .exactlyOnce)
        try late.expectNothing()
    }

    @Test(
        "MQTT-3.3.2-1: the topic name comes first and is UTF-8, or the connection closes",
        arguments: Transport.all)
    func topicName(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let watcher = try broker.subscriber("watcher", to: broker.topic("#"), .atLeastOnce)
        let client = try broker.connect("client")
        // Topic length and name, packet identifier, payload; in both directions.
        try client.send(
            bytes: [0x32, UInt8(topic.count + 5), 0x00, UInt8(topic.count)] + topic
                + [0x12, 0x34, 0x78])
        try client.expectBytes([0x40, 0x02, 0x12, 0x34])
        try watcher.expectBytes(
            [0x32, UInt8(topic.count + 5), 0x00, UInt8(topic.count)] + topic + [0x00, 0x01, 0x78])
        let broken: [[UInt8]] = [
            [0x30, 0x00], [0x30, 0x01, 0x00],  // no topic
            [0x30, 0x03, 0x00, 0x02, 0x61],  // a topic that reaches beyond the packet
            [0x32, 0x04, 0x00, 0x01, 0x61, 0x00],  // half an identifier
            RawPacket.publish(topic: topic + [0xC3, 0x28]),
            RawPacket.publish(topic: topic + [0xED, 0xA0, 0x80]),
        ]
        for packet in broken {
            let violator = try broker.connect("violator")
            try violator.send(bytes: packet)
            try violator.expectClosed()
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.3.2-2: a wildcard in a topic name closes the connection",
        arguments: Transport.all,
        ["#", "+", "a/#", "a/+/b", "+/a", "a#", "a+b", "aaaaaaaaaaaaaaaa+", "aaaaaaa#aaaaaaaaa"])
    func wildcards(transport: Transport, rest: String) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let watcher = try broker.subscriber("watcher", to: broker.topic("#"), .atMostOnce)
        let packets = [
            RawPacket.publish(topic: Array(broker.topic(rest).utf8)),
            RawPacket.publish(
                firstByte: 0x33, topic: Array(broker.topic(rest).utf8), identifier: 1),
            RawPacket.publish(firstByte: 0x34, topic: Array(rest.utf8), identifier: 1),
        ]
        for packet in packets {
            let client = try broker.connect("client")
            try client.send(bytes: packet)
            try client.expectClosed()
        }
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.3.2-3: a subscriber sees the publisher's topic name, whatever its filter",
        arguments: Transport.all, ["a/b/c", "a/+/c", "+/+/+", "a/#", "#", "a/b/c/#"])
    func topicNameOfADelivery(transport: Transport, filter: String) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a/b/c")
        let away = try broker.subscriber(
            "away", to: broker.topic(filter), .exactlyOnce, cleanSession: false)
        try away.disconnect()
        let client = try broker.subscriber("client", to: broker.topic(filter), .exactlyOnce)
        let publisher = try broker.connect("publisher")
        // Live, retained and queued.
        try publisher.publish(topic, "live", qos: .atMostOnce)
        try client.expect(.publish(topic, "live"))
        try publisher.publish(topic, "kept", qos: .atMostOnce, retain: true)
        try client.expect(.publish(topic, "kept"))
        try client.subscribe(broker.topic(filter), .exactlyOnce)
        try client.expect(.publish(topic, "kept", retain: true))
        try publisher.publish(topic, "queued", qos: .exactlyOnce)
        let again = try broker.connect("away", cleanSession: false, sessionPresent: true)
        try again.expect(.publish(topic, "queued", qos: .exactlyOnce, 1))
        try again.expectNothing()
    }

    @Test(
        "MQTT-3.3.4-1: QoS 0 gets no answer, QoS 1 one PUBACK, QoS 2 one PUBREC",
        arguments: Transport.all, [false, true])
    func answers(transport: Transport, hasReceiver: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        if hasReceiver {
            let stored = try broker.subscriber(
                "stored", to: topic, .exactlyOnce, cleanSession: false)
            try stored.disconnect()
        }
        let client = try broker.connect("client")
        for retain in [false, true] {
            try client.send(.publish(topic, "x", qos: .atMostOnce, retain: retain))
            try client.expectNothing()
            try client.send(.publish(topic, "x", qos: .atLeastOnce, 0x0201, retain: retain))
            try client.expectBytes([0x40, 0x02, 0x02, 0x01])
            try client.expectNothing()
            try client.send(.publish(topic, "x", qos: .exactlyOnce, 0x0304, retain: retain))
            try client.expectBytes([0x50, 0x02, 0x03, 0x04])
            try client.expectNothing()
            try client.send(.pubrel(0x0304))
            try client.expectBytes([0x70, 0x02, 0x03, 0x04])
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.3.5-1: overlapping subscriptions deliver once, at their highest QoS, in any order",
        arguments: Transport.all,
        [
            [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 1, 0], [1, 0, 0],
        ]
            as [[UInt8]])
    func overlap(transport: Transport, granted: [UInt8]) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a/b")
        let filters = [topic, broker.topic("a/+"), broker.topic("#")]
        let client = try broker.connect("client")
        for (filter, rawQoS) in zip(filters, granted) {
            try client.subscribe(filter, try #require(QoS(rawValue: rawQoS)))
        }
        let publisher = try broker.connect("publisher")
        let highest = try #require(granted.max().flatMap { QoS(rawValue: $0) })
        var identifier: UInt16 = 1
        for qos in QoS.allCases {
            try publisher.publish(topic, "\(qos)", qos: qos)
            let expected = min(qos, highest)
            try client.expect(
                .publish(
                    topic, "\(qos)", qos: expected, try #require(PacketIdentifier(identifier))))
            try client.expectNothing()
            if expected != .atMostOnce { identifier += 1 }
        }
        // Without the highest, the next QoS applies.
        let position = try #require(granted.firstIndex(of: highest.rawValue))
        try client.unsubscribe(filters[position])
        var left = granted
        left.remove(at: position)
        let next = try #require(left.max().flatMap { QoS(rawValue: $0) })
        try publisher.publish(topic, "left", qos: .exactlyOnce)
        try client.expect(
            .publish(topic, "left", qos: next, try #require(PacketIdentifier(identifier))))
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.3.5-2: a PUBLISH that is not carried out gets no other answer than the end",
        arguments: Transport.all, QoS.allCases)
    func noNegativeAnswer(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // One level more than the broker's limit allows.
        let topic = broker.topic(String(repeating: "/", count: 127))
        let watcher = try broker.subscriber("watcher", to: broker.topic("#"), .exactlyOnce)
        let client = try broker.connect("client")
        try client.send(.publish(topic, "x", qos: qos, 1))
        try client.expectClosed()
        try watcher.expectNothing()
    }
}
