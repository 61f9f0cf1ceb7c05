import HermesTesting
import MQTTCodec
import Testing

/// A way in which a connection ends without a valid DISCONNECT.
enum ConnectionEnd: CaseIterable, Sendable, CustomTestStringConvertible {
    case peerCloses, peerResets, keepAlive, takeOver, takeOverByCleanSession, malformedPacket,
        packetOnlyServersSend, secondConnect, malformedSecondConnect, flagsOfDisconnect,
        bytesBehindDisconnect, limit

    var testDescription: String { "\(self)" }

    /// Ends the connection of the broker's client `name`, whose keep alive is 1 s.
    func end(_ client: Client, _ name: String, of broker: BrokerUnderTest) throws {
        switch self {
        case .peerCloses: try client.finish()
        case .peerResets: client.reset()
        case .keepAlive: try broker.pass(milliseconds: 1_760)
        case .takeOver: try client.replace(by: broker.connectPacket(name, cleanSession: false))
        case .takeOverByCleanSession: try client.replace(by: broker.connectPacket(name))
        case .malformedPacket: try client.send(wire: "36 05 00 01 61 00 01")
        case .packetOnlyServersSend: try client.send(wire: "D0 00")
        case .secondConnect: try client.send(broker.connectPacket(name))
        case .malformedSecondConnect:
            try client.send(bytes: RawPacket.connect(flags: 0x03, payload: [0, 0]))
        case .flagsOfDisconnect: try client.send(wire: "E1 00")
        case .bytesBehindDisconnect: try client.send(wire: "E0 01 00")
        case .limit:
            // One more QoS 2 message than the limit without PUBREL.
            for number in UInt16(1)...1_001 {
                try client.send(
                    .publish(
                        broker.topic("unwatched"), "", qos: .exactlyOnce,
                        try #require(PacketIdentifier(number))))
            }
        }
    }
}

@Suite("3.1.2.5 Will")
struct WillConformance {
    private func connect(
        _ broker: BrokerUnderTest, _ topic: String, retain: Bool = false,
        qos: QoS = .atMostOnce, keepAlive: UInt16 = 0
    ) throws -> Client {
        try broker.connect(
            "client", keepAlive: keepAlive,
            will: PacketContent.Will(
                topic: topic, message: Array("gone".utf8), qos: qos, retain: retain))
    }

    @Test(
        "MQTT-3.1.2-8: the will is published, once, by every end but DISCONNECT",
        arguments: Transport.all, ConnectionEnd.allCases)
    func publishedByEveryEnd(transport: Transport, end: ConnectionEnd) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
        let client = try connect(broker, topic, qos: .atLeastOnce, keepAlive: 1)
        try watcher.expectNothing()
        try end.end(client, "client", of: broker)
        try watcher.expect(.publish(topic, "gone", qos: .atLeastOnce, 1))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-8: a CONNECT that was not accepted leaves no will", arguments: Transport.all)
    func noWillOfARefusal(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        _ = try broker.connect("client", userName: "alice")
        let foreign = try broker.open()
        try foreign.send(
            broker.connectPacket(
                "client", will: PacketContent.Will(topic: topic, message: [1]),
                userName: "mallory"))
        try foreign.expect(.connack(.refused(.notAuthorized)))
        try foreign.expectClosed()
        let malformed = try broker.open()
        try malformed.send(
            bytes: RawPacket.connect(
                flags: 0x06, payload: RawPacket.field("x"), RawPacket.field(topic),
                RawPacket.field("m"), [0x00]))
        try malformed.expectClosed()
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-10: a will that was published, or deleted by DISCONNECT, does not come again",
        arguments: Transport.all)
    func usedUpOnce(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let will = PacketContent.Will(topic: topic, message: Array("gone".utf8))
        let first = try broker.connect("client", cleanSession: false, will: will)
        try first.finish()
        try watcher.expect(.publish(topic, "gone"))
        let second = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try second.finish()
        try watcher.expectNothing()
        let third = try broker.connect(
            "client", cleanSession: false, will: will, sessionPresent: true)
        try third.disconnect()
        try watcher.expectNothing()
        let fourth = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try fourth.finish()
        try watcher.expectNothing()
        // A take-over by a client with another will: each is published with its own connection.
        let fifth = try broker.connect(
            "client", cleanSession: false, will: will, sessionPresent: true)
        let sixth = try broker.connect(
            "client", cleanSession: false,
            will: PacketContent.Will(topic: topic, message: Array("other".utf8)),
            sessionPresent: true)
        try fifth.expectClosed()
        try watcher.expect(.publish(topic, "gone"))
        try watcher.expectNothing()
        try sixth.finish()
        try watcher.expect(.publish(topic, "other"))
        try watcher.expectNothing()
    }

    @Test(
        "MQTT-3.1.2-12: without a will nothing is published when a connection ends",
        arguments: Transport.all, [ConnectionEnd.peerCloses, .malformedPacket, .takeOver])
    func noWill(transport: Transport, end: ConnectionEnd) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let watcher = try broker.subscriber("watcher", to: "#", .atMostOnce)
        let client = try broker.connect("client")
        try end.end(client, "client", of: broker)
        if end == .malformedPacket { try client.expectClosed() }
        // Over TCP, publications of other tests arrive too.
        for packet in try watcher.takeAll() {
            guard case .publish(let publish) = packet else { continue }
            let topic = String(decoding: publish.topic, as: UTF8.self)
            #expect(!topic.isEmpty && !topic.hasPrefix(broker.prefix))
        }
    }

    @Test(
        "MQTT-3.1.2-16: a will without will retain is not kept, and replaces nothing that is",
        arguments: Transport.all, QoS.allCases)
    func notRetained(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for topic in [broker.topic("empty"), broker.topic("taken")] {
            let watcher = try broker.subscriber("watcher", to: topic, .exactlyOnce)
            if topic == broker.topic("taken") {
                let publisher = try broker.connect("publisher")
                try publisher.publish(topic, "former", retain: true)
                try watcher.expect(.publish(topic, "former"))
            }
            let client = try connect(broker, topic, qos: qos)
            try client.finish()
            try watcher.expect(.publish(topic, "gone", qos: qos, 1))
            let late = try broker.subscriber("late", to: topic, .exactlyOnce)
            if topic == broker.topic("taken") {
                try late.expect(.publish(topic, "former", retain: true))
            }
            try late.expectNothing()
        }
    }

    @Test(
        "MQTT-3.1.2-17: a will with will retain is delivered, kept with its QoS, and replaces",
        arguments: Transport.all, QoS.allCases)
    func retained(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "former", qos: .exactlyOnce, retain: true)
        let watcher = try broker.connect("watcher")
        try watcher.subscribe(topic, .atMostOnce)
        try watcher.expect(.publish(topic, "former", retain: true))
        let client = try connect(broker, topic, retain: true, qos: qos)
        try client.finish()
        try watcher.expect(.publish(topic, "gone"))
        try watcher.expectNothing()
        let late = try broker.subscriber("late", to: topic, .exactlyOnce)
        try late.expect(.publish(topic, "gone", qos: qos, 1, retain: true))
        try late.expectNothing()
    }
}
