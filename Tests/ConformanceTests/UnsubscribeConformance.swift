import HermesTesting
import MQTTCodec
import Testing

@Suite("3.10 UNSUBSCRIBE and 3.11 UNSUBACK")
struct UnsubscribeConformance {
    @Test(
        "MQTT-3.10.1-1: flags of UNSUBSCRIBE other than 0010 close the connection",
        arguments: Transport.all)
    func flags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packet = RawPacket.unsubscribe(filter: Array(broker.topic("a").utf8))
        #expect(packet[0] == 0xA2)
        let client = try broker.subscriber(
            "client", to: broker.topic("a"), .atMostOnce, cleanSession: false)
        try client.disconnect()
        for flags in UInt8(0)..<16 where flags != 2 {
            let violator = try broker.connect("client", cleanSession: false, sessionPresent: true)
            try violator.send(bytes: [0xA0 | flags] + packet.dropFirst())
            try violator.expectClosed()
        }
        // The subscription still exists.
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.send(.publish(broker.topic("a"), "x"))
        try again.expect(.publish(broker.topic("a"), "x"))
    }

    @Test(
        "MQTT-3.10.3-1: a filter that is not UTF-8 closes the connection, first or later in the packet",
        arguments: Transport.all, ["61 C3 28", "ED A0 80", "C0 80", "F4 90 80 80"] as [WireBytes])
    func illFormedFilter(transport: Transport, filter: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let good = RawPacket.field("a")
        let bad = RawPacket.field(filter.bytes)
        for body in [bad, good + bad, bad + good] {
            let client = try broker.connect("client")
            try client.send(bytes: RawPacket.packet(0xA2, [0x00, 0x01] + body))
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT-3.10.3-2: an UNSUBSCRIBE without a filter closes the connection",
        arguments: Transport.all,
        [[0x00, 0x01], [0x00], [], [0x00, 0x01, 0x00], [0x00, 0x01, 0x00, 0x02, 0x61]] as [[UInt8]])
    func noFilter(transport: Transport, body: [UInt8]) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        try client.send(bytes: RawPacket.packet(0xA2, body))
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.10.4-1: only the very same filter is removed, not one that matches it",
        arguments: Transport.all)
    func comparesLiterally(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let filters = ["a/b", "a/+", "a/#", "+/b", "#", "+/+", "a/b/#"]
        for kept in filters {
            let client = try broker.subscriber("client", to: broker.topic(kept), .atMostOnce)
            for other in filters + ["a/b/", "/a/b", "A/b", "a", "a/b/+"] where other != kept {
                try client.unsubscribe(broker.topic(other))
            }
            try client.send(.publish(broker.topic("a/b"), kept))
            try client.expect(.publish(broker.topic("a/b"), kept))
            try client.unsubscribe(broker.topic(kept))
            try client.send(.publish(broker.topic("a/b"), kept))
            try client.expectNothing()
        }
        // Other matching subscriptions remain, and those of other clients.
        let other = try broker.subscriber("other", to: broker.topic("a/+"), .atMostOnce)
        let client = try broker.subscriber("client", to: broker.topic("a/+"), .atMostOnce)
        try client.subscribe(broker.topic("a/b"), .atMostOnce)
        try client.unsubscribe(broker.topic("a/+"))
        try client.send(.publish(broker.topic("a/c"), "1"), .publish(broker.topic("a/b"), "2"))
        try client.expect(.publish(broker.topic("a/b"), "2"))
        try other.expect(.publish(broker.topic("a/c"), "1"), .publish(broker.topic("a/b"), "2"))
    }

    @Test(
        "MQTT-3.10.4-2: nothing new is delivered for a removed subscription, at any QoS",
        arguments: Transport.all, QoS.allCases)
    func nothingNew(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try publisher.publish(topic, "before", qos: qos)
        try client.expect(.publish(topic, "before", qos: qos, 1))
        try client.acknowledge(1, qos)
        try client.unsubscribe(topic)
        // Not while connected, not while offline, and not on reconnecting.
        try publisher.publish(topic, "after", qos: qos, retain: true)
        try client.expectNothing()
        try client.disconnect()
        try publisher.publish(topic, "away", qos: qos)
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expectNothing()
    }

    @Test(
        "MQTT-3.10.4-3: QoS 1 and 2 deliveries that have begun are completed after UNSUBSCRIBE",
        arguments: Transport.all)
    func completesDeliveries(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try publisher.publish(topic, "one", qos: .atLeastOnce)
        try publisher.publish(topic, "two", qos: .exactlyOnce)
        try publisher.publish(topic, "three", qos: .exactlyOnce)
        try client.expect(
            .publish(topic, "one", qos: .atLeastOnce, 1),
            .publish(topic, "two", qos: .exactlyOnce, 2),
            .publish(topic, "three", qos: .exactlyOnce, 3))
        try client.send(.pubrec(2))
        try client.expect(.pubrel(2))
        try client.unsubscribe(topic)
        // The exchange continues,
        try client.send(.pubrec(3))
        try client.expect(.pubrel(3))
        try client.finish()
        // also after a reconnect.
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expect(
            .publish(topic, "one", qos: .atLeastOnce, 1, isDuplicate: true), .pubrel(2),
            .pubrel(3))
        try again.send(.puback(1), .pubcomp(2), .pubcomp(3))
        try again.expectNothing()
        try again.finish()
        let last = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try last.expectNothing()
    }

    @Test(
        "MQTT-3.10.4-4: UNSUBACK has the packet identifier of its UNSUBSCRIBE",
        arguments: Transport.all, [0x0001, 0x00FF, 0x0100, 0xABCD, 0xFFFF] as [UInt16])
    func identifiers(transport: Transport, identifier: UInt16) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.subscriber(
            "client", to: broker.topic("a"), .atMostOnce, cleanSession: false)
        try client.send(
            bytes: RawPacket.unsubscribe(identifier, filter: Array(broker.topic("a").utf8)))
        try client.expectBytes(
            [0xB0, 0x02, UInt8(identifier >> 8), UInt8(identifier & 0xFF)])
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.10.4-5: UNSUBACK comes also when there was no such subscription",
        arguments: Transport.all)
    func nothingToRemove(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let packet = RawPacket.unsubscribe(7, filter: Array(broker.topic("none").utf8))
        for _ in 0..<3 {
            try client.send(bytes: packet)
            try client.expectBytes([0xB0, 0x02, 0x00, 0x07])
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.10.4-6: several filters are removed one by one, with one UNSUBACK",
        arguments: Transport.all)
    func severalFilters(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let names = ["a", "b", "c", "d"]
        try client.subscribe(names.map { PacketContent.Request(broker.topic($0), .atMostOnce) })
        try client.send(
            .unsubscribe(
                3, ["a", "none", "c", "a"].map { Array(broker.topic($0).utf8) }))
        try client.expectBytes([0xB0, 0x02, 0x00, 0x03])
        for name in names { try client.send(.publish(broker.topic(name), "x")) }
        try client.expect(.publish(broker.topic("b"), "x"), .publish(broker.topic("d"), "x"))
        try client.expectNothing()
    }
}
