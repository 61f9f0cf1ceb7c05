import HermesTesting
import MQTTCodec
import Testing

/// Errors common in implementations that no single statement's test shows. The whole list with its
/// tests is in `docs/conformance.md`.
@Suite("Commonly missed")
struct CommonlyMissedTests {
    @Test(
        "Commonly missed 2: a QoS 2 PUBLISH that arrives first with DUP is delivered, once",
        arguments: Transport.all, [true, false])
    func firstPublishWithDuplicateFlag(transport: Transport, cleanSession: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try broker.connect("client", cleanSession: cleanSession)
        try client.send(.publish(topic, "x", qos: .exactlyOnce, 9, isDuplicate: true))
        try client.expect(.pubrec(9))
        try client.send(.publish(topic, "x", qos: .exactlyOnce, 9, isDuplicate: true))
        try client.expect(.pubrec(9))
        try client.send(.pubrel(9))
        try client.expect(.pubcomp(9))
        try watcher.expect(.publish(topic, "x", qos: .exactlyOnce, 1))
        try watcher.expectNothing()
    }

    @Test(
        "Commonly missed 3: a resumed client gets re-sent messages with DUP, then waiting ones without",
        arguments: Transport.all)
    func resumeOrder(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        for (payload, qos) in [("1", QoS.exactlyOnce), ("2", .atLeastOnce), ("3", .exactlyOnce)] {
            try publisher.publish(topic, payload, qos: qos)
        }
        try client.expect(
            .publish(topic, "1", qos: .exactlyOnce, 1), .publish(topic, "2", qos: .atLeastOnce, 2),
            .publish(topic, "3", qos: .exactlyOnce, 3))
        try client.send(.pubrec(3))
        try client.expect(.pubrel(3))
        try client.finish()
        try publisher.publish(topic, "4", qos: .atLeastOnce)
        try publisher.publish(topic, "5", qos: .exactlyOnce)
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        let bytes = Array(topic.utf8)
        func publish(_ firstByte: UInt8, _ number: UInt8) -> [UInt8] {
            RawPacket.publish(
                firstByte: firstByte, topic: bytes, identifier: UInt16(number),
                payload: [0x30 + number])
        }
        try again.expectBytes(
            publish(0x3C, 1) + publish(0x3A, 2) + [0x62, 0x02, 0x00, 0x03] + publish(0x32, 4)
                + publish(0x34, 5))
        try again.expectNothing()
    }

    @Test(
        "Commonly missed 6: retained messages do not come again when a session is resumed",
        arguments: Transport.all)
    func retainedNotOnResume(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "kept", qos: .atLeastOnce, retain: true)
        let client = try broker.subscriber("client", to: topic, .atLeastOnce, cleanSession: false)
        try client.expect(.publish(topic, "kept", qos: .atLeastOnce, 1, retain: true))
        try client.send(.puback(1))
        try client.disconnect()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expectNothing()
        // Only new subscribers get it, and each of them does.
        try again.subscribe(topic, .atMostOnce)
        try again.expect(.publish(topic, "kept", retain: true))
        try again.expectNothing()
    }

    @Test(
        "Commonly missed 9: a remaining length other than the packet type's own closes the connection",
        arguments: Transport.all,
        [
            "40 00", "40 01 00", "40 03 00 01 00", "50 00", "50 01 00", "50 03 00 01 00", "62 00",
            "62 01 00", "62 03 00 01 00", "70 00", "70 01 00", "70 03 00 01 00", "C0 01 00",
            "C0 02 00 01", "E0 01 00", "E0 02 00 00", "40 02 00 00", "50 02 00 00", "62 02 00 00",
            "70 02 00 00",
        ] as [WireBytes])
    func exactRemainingLengths(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let client = try broker.connect(
            "client", will: PacketContent.Will(topic: topic, message: [0x21]))
        try client.send(wire: packet)
        try client.expectClosed()
        // A violation, even where the correct packet would be DISCONNECT.
        try watcher.expect(.publish(topic, "!"))
    }

    @Test(
        "Commonly missed 9: packets that only a server sends close the connection, in every state",
        arguments: Transport.all,
        ["20 02 00 00", "90 03 00 01 00", "B0 02 00 01", "D0 00", "00 00", "F0 00"] as [WireBytes])
    func packetsOnlyServersSend(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let before = try broker.open()
        try before.send(wire: packet)
        try before.expectClosed()
        let idle = try broker.connect("client")
        try idle.send(wire: packet)
        try idle.expectClosed()
        // While the broker waits for a similar acknowledgement.
        let topic = broker.topic("a")
        let busy = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try busy.send(.publish(topic, "x", qos: .exactlyOnce, 1))
        try busy.expectInAnyOrder(.publish(topic, "x", qos: .exactlyOnce, 1), .pubrec(1))
        try busy.send(wire: packet)
        try busy.expectClosed()
        let again = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try again.expect(.publish(topic, "x", qos: .exactlyOnce, 1, isDuplicate: true))
    }

    @Test(
        "Commonly missed 15: of connections that race for one identifier exactly one survives, whole",
        arguments: Transport.all, [true, false])
    func racingConnects(transport: Transport, cleanSession: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let will = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: will, .atMostOnce)
        let rivals = try (0..<8).map { _ in try broker.open() }
        for (number, rival) in rivals.enumerated() {
            try rival.send(
                broker.connectPacket(
                    "client", cleanSession: cleanSession,
                    will: PacketContent.Will(topic: will, message: [UInt8(0x30 + number)])),
                .subscribe(2, [PacketContent.Request(broker.topic("a"), .atLeastOnce)]))
        }
        // One connection remains. Those accepted before they were replaced leave their wills; those
        // replaced before CONNACK leave none.
        var survivors: [(client: Client, will: PacketContent)] = []
        var left: Set<PacketContent> = []
        for (number, rival) in rivals.enumerated() {
            try rival.fence()
            let packet = PacketContent.publish(will, "\(number)")
            let wasAccepted = try rival.takeAll().first.map { packet in
                if case .connack(let connack) = packet {
                    connack.returnCode == .accepted
                } else {
                    false
                }
            }
            if !rival.isClosed {
                survivors.append((rival, packet))
            } else if wasAccepted == true {
                left.insert(packet)
            }
        }
        try #require(survivors.count == 1)
        let survivor = survivors[0].client
        let wills = try watcher.takeAll()
        #expect(wills.count == left.count && Set(wills) == left)
        // The remaining connection has its subscription and its will.
        try survivor.publish(broker.topic("a"), "x", qos: .atLeastOnce)
        try survivor.expect(.publish(broker.topic("a"), "x", qos: .atLeastOnce, 1))
        try survivor.finish()
        try watcher.expect([survivors[0].will])
        try watcher.expectNothing()
    }

    @Test(
        "Commonly missed 16: control characters and non-characters pass, only U+0000 does not",
        arguments: Transport.all)
    func unusualCharacters(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.subscriber("client", to: broker.topic("+"), .atMostOnce)
        let scalars =
            Array(UInt32(0x01)...0x1F) + Array(0x7F...0x9F)
            + [0xFDD0, 0xFDEF, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF]
        for value in scalars {
            let scalar = try #require(Unicode.Scalar(value))
            let topic = broker.topic("\(Character(scalar))x")
            try client.send(.publish(topic, ""))
            try client.expectBytes(RawPacket.publish(topic: Array(topic.utf8)))
        }
        try client.expectNothing()
    }
}
