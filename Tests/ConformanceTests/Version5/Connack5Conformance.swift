import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.2: CONNACK")
struct Connack5Conformance {
    @Test(
        "MQTT5-3.2.0-1, MQTT5-3.2.2-1: CONNACK is the first packet, with no flag but Session Present",
        arguments: Transport.all)
    func first(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        for isPresent in [false, true] {
            let client = try broker.open()
            try client.send5(
                broker.connectPacket5("client", cleanStart: false, expiry: 100), .pingreq,
                .subscribe(1, [topic: 1]))
            try client.accept5(sessionPresent: isPresent)
            if isPresent {
                let packets = [try client.next5(), try client.next5(), try client.next5()]
                #expect(
                    Set(packets.compactMap { $0?.plain })
                        == [.publish(topic, "x", qos: 1, 1), .pingresp, .suback(1, [1])])
            } else {
                try client.expect5(.pingresp, .suback(1, [1]))
            }
            try client.finish()
            try publisher.publish5(topic, "x", qos: 1)
        }
    }

    @Test(
        "MQTT5-3.1.2-28, trap 31, trap 33: CONNACK has what differs from the standard's defaults, of the broker's own, and no Response Information",
        arguments: Transport.all)
    func properties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let askings: [[Property5]] = [
            [], [.receiveMaximum(3), .aliasMaximum(2), .packetSize(5_000)],
            [.requestResponse(0)], [.requestResponse(1)],
        ]
        for (number, asking) in askings.enumerated() {
            let client = try broker.connect5("client\(number)", expiry: 100, asking)
            let connack = try #require(client.connack)
            #expect(
                Set(connack.properties.map(\.identifier)) == [0x21, 0x22, 0x27], "\(connack)")
            let receiveMaximum = connack.property(0x21)?.number ?? 0
            #expect((100..<65_535).contains(receiveMaximum), "generous, and the broker's own")
            #expect(connack.property(0x22)?.number == 16)
            #expect(connack.property(0x27)?.number == 1_024 * 1_024)
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT5-3.2.2-9: no Maximum QoS is announced: every QoS is taken and granted, RETAIN too",
        arguments: Transport.all)
    func everyQoS(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.connect5("client")
        #expect(client.connack?.property(0x24) == nil && client.connack?.property(0x25) == nil)
        for qos in UInt8(0)...2 {
            try client.publish5(topic, "\(qos)", qos: qos, retain: true)
            try client.subscribe5(topic, qos)
            let packet = try #require(try client.next5())
            #expect(packet.first == 0x31 | qos << 1 && packet.payload == Array("\(qos)".utf8))
            if qos == 1 { try client.send5(.puback(packet.messageIdentifier)) }
            try client.unsubscribe5(topic)
        }
    }

    @Test(
        "Section 3.2.2.3.2: a Session Expiry above the limit is lowered, and CONNACK says so; trap 13",
        arguments: Transport.all)
    func cappedExpiry(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let limit = UInt32(14 * 86_400)
        for asked in [limit + 1, UInt32.max - 1, UInt32.max] {
            let client = try broker.connect5("client", expiry: asked)
            #expect(client.connack?.property(0x11) == .sessionExpiry(limit))
            try client.disconnect5()
        }
        for asked in [0, 1, limit] {
            let client = try broker.connect5("client", expiry: asked)
            #expect(client.connack?.property(0x11) == nil)
            try client.disconnect5()
        }
    }

    @Test(
        "MQTT5-3.2.2-19, MQTT5-3.2.2-20: CONNACK of a refusal keeps to the client's Maximum Packet Size",
        arguments: Transport.all)
    func sizeOfARefusal(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        _ = try broker.connect5("client", expiry: 100, userName: "alice")
        for size in [UInt32(5), 6, 8, 12, 20, 64] {
            let other = try broker.open()
            try other.send5(
                broker.connectPacket5(
                    "client", cleanStart: false, [.packetSize(size)], userName: "mallory"))
            let frame = try #require(try other.nextFrame())
            #expect(frame.count <= Int(size) && frame[3] == 0x87, "\(WireBytes(frame))")
            try other.expectClosed()
        }
    }

    @Test(
        "MQTT5-3.2.2-15, trap 29: a packet above the announced Maximum Packet Size ends with 0x95, one of exactly that size is taken",
        arguments: Transport.all)
    func maximumPacketSize(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let client = try broker.connect5("client")
        let size = try #require(client.connack?.property(0x27)?.number)
        // Topic, Property Length, and a fixed header of four bytes.
        let room = size - 4 - 2 - topic.utf8.count - 1
        let packet = Packet5.publish(
            topic: Array(topic.utf8), [UInt8](repeating: 0x78, count: room))
        #expect(packet.bytes.count == size)
        try client.send5(packet)
        try client.expectNothing()
        let larger = Packet5.publish(
            topic: Array(topic.utf8), [UInt8](repeating: 0x78, count: room + 1))
        try client.send(part: Array(larger.bytes.prefix(64)))
        try client.expectEnd5(0x95)
    }
}
