import HermesTesting
import MQTTCodec
import Testing

@Suite("3.1.4 CONNECT: response")
struct ConnectResponseConformance {
    /// CONNECT packets that break section 3.1 and match no return code.
    static let malformed: [WireBytes] = [
        "10 00",  // no variable header
        "10 06 00 04 4D 51 54 54",  // ends after the protocol name
        "10 07 00 04 4D 51 54 54 04",  // ends after the level
        "10 08 00 04 4D 51 54 54 04 02",  // ends after the flags
        "10 09 00 04 4D 51 54 54 04 02 00",  // ends within the keep alive
        "10 0A 00 04 4D 51 54 54 04 02 00 00",  // no payload
        "10 0D 00 04 4D 51 54 54 04 02 00 00 00 02 61",  // a client identifier cut off
        "10 0E 00 04 4D 51 54 54 04 02 00 00 00 01 61 00",  // bytes behind the payload
        "10 0D 00 04 4D 51 54 54 04 03 00 00 00 01 61",  // the reserved flag
        "10 0D 00 04 4D 51 54 54 04 42 00 00 00 01 61",  // a password alone
        "10 0D 00 04 4D 51 54 54 04 1E 00 00 00 01 61",  // will QoS 3
        "10 12 00 04 4D 51 54 54 04 06 00 00 00 01 61 00 01 23 00 00",  // # in the will topic
        "10 11 00 04 4D 51 54 54 04 06 00 00 00 01 61 00 00 00 00",  // an empty will topic
    ]

    @Test(
        "MQTT-3.1.4-1: a malformed CONNECT closes the connection without CONNACK",
        arguments: Transport.all, malformed)
    func malformedConnect(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(wire: packet)
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.1.4-2: the connection that an identifier had closes when it connects again",
        arguments: Transport.all, [true, false])
    func takeOver(transport: Transport, cleanSession: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let old = try broker.connect("client", cleanSession: cleanSession)
        let new = try broker.connect(
            "client", cleanSession: cleanSession, sessionPresent: !cleanSession)
        try old.expectClosed()
        // The newer connection stays.
        try new.expectNothing()
        let newest = try broker.connect(
            "client", cleanSession: cleanSession, sessionPresent: !cleanSession)
        try new.expectClosed()
        try newest.expectNothing()
    }

    @Test(
        "MQTT-3.1.4-3: a take-over carries out its own clean session", arguments: Transport.all)
    func cleanSessionOfATakeOver(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        let stored = try broker.subscriber(
            "client", to: topic, .atLeastOnce, cleanSession: false)
        // 0 after 0: the subscription remains.
        let resumed = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try stored.expectClosed()
        try publisher.publish(topic, "1", qos: .atLeastOnce)
        try resumed.expect(.publish(topic, "1", qos: .atLeastOnce, 1))
        // 1 after 0: the subscription is removed, with the unacknowledged message.
        let clean = try broker.connect("client", cleanSession: true, sessionPresent: false)
        try resumed.expectClosed()
        try publisher.publish(topic, "2", qos: .atLeastOnce)
        try clean.expectNothing()
        // 0 after 1: nothing of the clean session remains.
        try clean.subscribe(topic, .atLeastOnce)
        let fresh = try broker.connect("client", cleanSession: false, sessionPresent: false)
        try clean.expectClosed()
        try publisher.publish(topic, "3", qos: .atLeastOnce)
        try fresh.expectNothing()
    }

    @Test(
        "MQTT-3.1.4-4: an accepted CONNECT is answered by CONNACK with code 0, once",
        arguments: Transport.all)
    func accepted(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                flags: 0x02, payload: RawPacket.field(broker.identifier("client"))))
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.1.4-5: packets after a rejected CONNECT have no effect",
        arguments: Transport.all)
    func behindARejectedConnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber("watcher", to: broker.topic("#"), .atMostOnce)
        let owner = try broker.connect("owned", userName: "alice")
        let identifier = RawPacket.field(broker.identifier("client"))
        let rejected: [(packet: [UInt8], answer: [UInt8])] = [
            (RawPacket.connect(level: 6, flags: 0x02, payload: identifier), [0x20, 2, 0, 1]),
            (RawPacket.connect(flags: 0x00, payload: [0, 0]), [0x20, 2, 0, 2]),
            (
                try broker.connectPacket("owned", userName: "mallory").encoded(),
                [0x20, 2, 0, 5]
            ),
            (RawPacket.connect(flags: 0x03, payload: identifier), []),
        ]
        let behind =
            RawPacket.publish(topic: Array(topic.utf8), payload: [1])
            + RawPacket.publish(
                firstByte: 0x33, topic: Array(topic.utf8), identifier: 1, payload: [2])
            + (try broker.connectPacket("client", cleanSession: false).encoded())
        for (packet, answer) in rejected {
            let client = try broker.open()
            try client.send(bytes: packet + behind)
            try client.expectBytes(answer)
            try client.expectClosed()
        }
        try watcher.expectNothing()
        // The rejected take-over had no effect on the owner, and its will was not retained.
        try owner.subscribe(topic, .atMostOnce)
        try owner.expectNothing()
        _ = try broker.connect("client", cleanSession: false, sessionPresent: false)
    }
}
