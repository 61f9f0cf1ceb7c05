import HermesTesting
import MQTTCodec
import Testing

@Suite("3.8 SUBSCRIBE")
struct SubscribeConformance {
    typealias Request = PacketContent.Request

    @Test(
        "MQTT-3.8.1-1: flags of SUBSCRIBE other than 0010 close the connection",
        arguments: Transport.all)
    func flags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packet = RawPacket.subscribe(filter: Array(broker.topic("a").utf8))
        #expect(packet[0] == 0x82)
        for flags in UInt8(0)..<16 where flags != 2 {
            let client = try broker.connect("client", cleanSession: false)
            try client.send(bytes: [0x80 | flags] + packet.dropFirst())
            try client.expectClosed()
            // There is no subscription.
            let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try again.publish(broker.topic("a"), "x")
            try again.expectNothing()
            _ = try broker.connect("client", cleanSession: true)
        }
    }

    @Test(
        "MQTT-3.8.3-1: a topic filter that is not UTF-8 closes the connection",
        arguments: Transport.all, ["61 C3 28", "ED A0 80", "C0 80", "F4 90 80 80"] as [WireBytes])
    func illFormedFilter(transport: Transport, filter: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(bytes: RawPacket.subscribe(filter: filter.bytes))
        try client.expectClosed()
    }

    @Test("MQTT-3.8.3-2: filters with wildcards are granted and served", arguments: Transport.all)
    func wildcards(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for filter in ["+", "#", "a/+", "a/#", "+/b", "+/+", "a/+/#"] {
            let client = try broker.subscriber(to: broker.topic(filter), .exactlyOnce)
            try client.send(.publish(broker.topic("a"), "1"), .publish(broker.topic("a/b"), "2"))
            let matchesFirst = ["+", "#", "a/#"].contains(filter)
            if matchesFirst { try client.expect(.publish(broker.topic("a"), "1")) }
            if filter != "+" { try client.expect(.publish(broker.topic("a/b"), "2")) }
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.8.3-3: a SUBSCRIBE without a filter closes the connection", arguments: Transport.all
    )
    func noFilter(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // Empty, too short, a filter without QoS, an incomplete filter.
        let bodies: [[UInt8]] = [
            [0x00, 0x01], [0x00], [], [0x00, 0x01, 0x00, 0x01, 0x61],
            [0x00, 0x01, 0x00, 0x02, 0x61],
            [0x00, 0x01, 0x00],
        ]
        for body in bodies {
            let client = try broker.connect("client")
            try client.send(bytes: RawPacket.packet(0x82, body))
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT-3.8.3-4: a requested QoS byte other than 0, 1 and 2 closes the connection",
        arguments: Transport.all, [0x03, 0x04, 0x05, 0x0A, 0x40, 0x80, 0x82, 0xFC, 0xFF] as [UInt8])
    func requestedQoS(transport: Transport, byte: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let filter = RawPacket.field(broker.topic("a"))
        let good = RawPacket.field(broker.topic("good")) + [0x00]
        // Alone, after and before a valid request: none takes effect.
        for body in [filter + [byte], good + filter + [byte], filter + [byte] + good] {
            let client = try broker.connect("client", cleanSession: false)
            try client.send(bytes: RawPacket.packet(0x82, [0x00, 0x01] + body))
            try client.expectClosed()
            let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try again.publish(broker.topic("good"), "x")
            try again.publish(broker.topic("a"), "x")
            try again.expectNothing()
            _ = try broker.connect("client", cleanSession: true)
        }
    }

    @Test(
        "MQTT-3.8.4-1: every SUBSCRIBE is answered with one SUBACK, also a repeated one",
        arguments: Transport.all)
    func answered(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        for _ in 0..<3 {
            try client.send(.subscribe(7, [Request(broker.topic("a"), .atLeastOnce)]))
            try client.expectBytes([0x90, 0x03, 0x00, 0x07, 0x01])
            try client.expectNothing()
        }
        // All messages that were sent, at once.
        try client.send(
            .subscribe(1, [Request(broker.topic("b"), .atMostOnce)]),
            .subscribe(1, [Request(broker.topic("c"), .exactlyOnce)]))
        try client.expect(.suback(1, [0]), .suback(1, [2]))
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.8.4-2: SUBACK has the packet identifier of its own SUBSCRIBE",
        arguments: Transport.all)
    func identifiers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let packets = [0x0001, 0xFFFF, 0x0100, 0x7FFF, 0x00FF].map { number in
            RawPacket.subscribe(UInt16(number), filter: Array(broker.topic("\(number)").utf8))
        }
        try client.send(bytes: packets.flatMap { $0 })
        for packet in packets {
            let start = packet.startIndex + 2
            try client.expectBytes([0x90, 0x03] + packet[start..<start + 2] + [0x00])
        }
    }

    @Test(
        "MQTT-3.8.4-3: an identical filter replaces its subscription, and retained messages are sent again",
        arguments: Transport.all)
    func replaces(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "kept", qos: .exactlyOnce, retain: true)
        for filter in [topic, broker.topic("+"), broker.topic("#")] {
            let client = try broker.connect("client")
            var identifier: UInt16 = 1
            // Up and down: the new QoS applies, and there is one subscription.
            for qos in [QoS.atLeastOnce, .exactlyOnce, .exactlyOnce, .atMostOnce, .atLeastOnce] {
                let next = { () throws -> PacketIdentifier in
                    defer { if qos != .atMostOnce { identifier += 1 } }
                    return try #require(PacketIdentifier(identifier))
                }
                try client.subscribe(filter, qos)
                let fetched = try next()
                try client.expect(.publish(topic, "kept", qos: qos, fetched, retain: true))
                try client.acknowledge(fetched, qos)
                try publisher.publish(topic, "live", qos: .exactlyOnce)
                let live = try next()
                try client.expect(.publish(topic, "live", qos: qos, live))
                try client.expectNothing()
                try client.acknowledge(live, qos)
            }
            try client.unsubscribe(filter)
            try publisher.publish(topic, "later", qos: .exactlyOnce)
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.8.4-3: subscribing again interrupts no flow of publications",
        arguments: Transport.all)
    func flowGoesOn(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        // 20 are in flight, 30 wait.
        for number in 0..<50 { try publisher.publish(topic, "\(number)", qos: .atLeastOnce) }
        try client.subscribe(topic, .exactlyOnce)
        for number in UInt16(0)..<50 {
            let identifier = try #require(PacketIdentifier(number + 1))
            try client.expect(.publish(topic, "\(number)", qos: .atLeastOnce, identifier))
            try client.send(.puback(identifier))
            if number % 10 == 0 { try client.subscribe(topic, .exactlyOnce) }
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.8.4-4: several filters count as if they had come one by one, with one SUBACK",
        arguments: Transport.all)
    func severalFilters(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        for rest in ["a", "b"] { try publisher.publish(broker.topic(rest), "kept", retain: true) }
        let client = try broker.connect("client")
        // The later of two equal filters applies.
        try client.subscribe([
            Request(broker.topic("a"), .atMostOnce), Request(broker.topic("b"), .exactlyOnce),
            Request(broker.topic("c"), .atMostOnce), Request(broker.topic("c"), .atLeastOnce),
            Request(broker.topic("d"), .exactlyOnce), Request(broker.topic("d"), .atMostOnce),
        ])
        try client.expectInAnyOrder(
            .publish(broker.topic("a"), "kept", retain: true),
            .publish(broker.topic("b"), "kept", retain: true))
        let expected = [
            ("a", QoS.atMostOnce), ("b", .exactlyOnce), ("c", .atLeastOnce), ("d", .atMostOnce),
        ]
        var identifier: UInt16 = 1
        for (rest, qos) in expected {
            try publisher.publish(broker.topic(rest), "live", qos: .exactlyOnce)
            try client.expect(
                .publish(
                    broker.topic(rest), "live", qos: qos,
                    try #require(PacketIdentifier(identifier))))
            if qos != .atMostOnce { identifier += 1 }
        }
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.8.4-5: SUBACK has a return code per filter, the granted QoS or a failure",
        arguments: Transport.all)
    func returnCodePerFilter(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        // A filter with too many levels is rejected, the others are not.
        let deep = broker.topic(String(repeating: "/", count: 127))
        try client.send(
            .subscribe(
                5,
                [
                    Request(broker.topic("0"), .atMostOnce), Request(deep, .exactlyOnce),
                    Request(broker.topic("2"), .exactlyOnce),
                    Request(broker.topic("1"), .atLeastOnce),
                ]))
        try client.expectBytes([0x90, 0x06, 0x00, 0x05, 0x00, 0x80, 0x02, 0x01])
        // Deliveries have the granted QoS.
        let publisher = try broker.connect("publisher")
        for rest in ["0", "2", "1"] {
            try publisher.publish(broker.topic(rest), "x", qos: .exactlyOnce)
        }
        try client.expect(
            .publish(broker.topic("0"), "x"),
            .publish(broker.topic("2"), "x", qos: .exactlyOnce, 1),
            .publish(broker.topic("1"), "x", qos: .atLeastOnce, 2))
    }

    @Test(
        "MQTT-3.8.4-6: delivered at the lower of the published and the granted QoS",
        arguments: Transport.all, QoS.allCases)
    func lowerQoS(transport: Transport, granted: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.subscriber(to: topic, granted)
        let stored = try broker.subscriber("stored", to: topic, granted, cleanSession: false)
        let publisher = try broker.connect("publisher")
        var identifier: UInt16 = 1
        for qos in QoS.allCases {
            try publisher.publish(topic, "\(qos)", qos: qos)
            let lower = min(qos, granted)
            for receiver in [client, stored] {
                try receiver.expect(
                    .publish(
                        topic, "\(qos)", qos: lower, try #require(PacketIdentifier(identifier))))
            }
            if lower != .atMostOnce { identifier += 1 }
        }
        try client.expectNothing()
        try stored.expectNothing()
    }
}
