import HermesTesting
import MQTTCodec
import Testing

@Suite("3.1.3 CONNECT: payload")
struct ConnectPayloadConformance {
    @Test(
        "MQTT-3.1.3-1: client identifier, will topic, will message, user name, password",
        arguments: Transport.all)
    func order(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: topic, .atMostOnce)
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                flags: 0xC4, payload: RawPacket.field(broker.identifier("client")),
                RawPacket.field(topic), RawPacket.field("message"), RawPacket.field("alice"),
                RawPacket.field("password")))
        try client.expect(.connack(.accepted(sessionPresent: false)))
        try client.finish()
        try watcher.expect(.publish(topic, "message"))
        // The session belongs to this client identifier and user name.
        let foreign = try broker.open()
        try foreign.send(
            broker.connectPacket("client", cleanSession: false, userName: "password"))
        try foreign.expect(.connack(.refused(.notAuthorized)))
        try foreign.expectClosed()
        _ = try broker.connect(
            "client", cleanSession: false, userName: "alice", sessionPresent: true)
    }

    @Test(
        "MQTT-3.1.3-2: the client identifier, and nothing less, names the session",
        arguments: Transport.all)
    func identifierNamesSession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber("phone", to: topic, .atLeastOnce, cleanSession: false)
        try first.disconnect()
        let publisher = try broker.connect("publisher")
        try publisher.publish(topic, "x", qos: .atLeastOnce)
        for other in ["phone2", "phon", "Phone", "phone ", ""] {
            let client = try broker.connect(other, cleanSession: false, sessionPresent: false)
            try client.expectNothing()
        }
        let again = try broker.connect("phone", cleanSession: false, sessionPresent: true)
        try again.expect(.publish(topic, "x", qos: .atLeastOnce, 1))
    }

    @Test(
        "MQTT-3.1.3-3: a CONNECT without a client identifier closes the connection",
        arguments: Transport.all, [[], [0x00], [0x00, 0x02, 0x61]] as [[UInt8]])
    func missingIdentifier(transport: Transport, payload: [UInt8]) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(bytes: RawPacket.connect(flags: 0x02, payload: payload))
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.1.3-4: a client identifier that is not UTF-8 closes the connection",
        arguments: Transport.all)
    func illFormedIdentifier(transport: Transport) throws {
        try expectIllFormedTextCloses(transport, .clientID)
    }

    @Test(
        "MQTT-3.1.3-5: identifiers of 1 to 23 of the plain characters are accepted",
        arguments: Transport.all)
    func plainIdentifiers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let characters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        let identifiers =
            characters.map { String($0) }
            + (1...23).map { String((characters + characters).dropFirst($0 * 2).prefix($0)) }
        for identifier in identifiers {
            let client = try broker.open()
            try client.send(.connect(PacketContent.Connect(clientID: identifier)))
            try client.expect(.connack(.accepted(sessionPresent: false)))
        }
    }

    @Test(
        "MQTT-3.1.3-6: clients without an identifier get one each, and are served like others",
        arguments: Transport.all)
    func emptyIdentifier(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        var clients: [Client] = []
        for _ in 0..<5 {
            let client = try broker.open()
            try client.send(.connect(PacketContent.Connect(clientID: "")))
            try client.expectBytes([0x20, 0x02, 0x00, 0x00])
            try client.subscribe(topic, .atLeastOnce)
            clients.append(client)
        }
        // Unique: no client took over another's session.
        try clients[0].publish(topic, "x", qos: .atLeastOnce)
        for client in clients {
            try client.expect(.publish(topic, "x", qos: .atLeastOnce, 1))
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT-3.1.3-7, MQTT-3.1.3-8: no identifier with clean session 0 is answered 0x02, and closed",
        arguments: Transport.all)
    func emptyIdentifierOfASession(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(bytes: RawPacket.connect(flags: 0x00, payload: [0x00, 0x00]))
        try client.expectBytes([0x20, 0x02, 0x00, 0x02])
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.1.3-9: a rejected identifier is answered 0x02, and the connection closes",
        arguments: Transport.all, [0x00, 0x02] as [UInt8])
    func rejectedIdentifier(transport: Transport, flags: UInt8) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // MQTT 3.1 has no empty identifiers, not even with clean session 1.
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                name: Array("MQIsdp".utf8), level: 3, flags: flags, payload: [0x00, 0x00]))
        try client.expectBytes([0x20, 0x02, 0x00, 0x02])
        try client.expectClosed()
    }

    @Test(
        "MQTT-3.1.3-9: an identifier above limits.max_client_id is answered 0x02",
        arguments: Transport.all)
    func longIdentifier(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let longest = String(
            repeating: "x", count: 1_024 - broker.identifier("").utf8.count)
        try broker.connect(longest).finish()
        let refused = try broker.open()
        try refused.send(broker.connectPacket(longest + "x"))
        try refused.expectBytes([0x20, 0x02, 0x00, 0x02])
        try refused.expectClosed()
    }

    @Test(
        "MQTT-3.1.3-10: a will topic that is not UTF-8 closes the connection",
        arguments: Transport.all)
    func illFormedWillTopic(transport: Transport) throws {
        try expectIllFormedTextCloses(transport, .willTopic)
    }

    @Test(
        "MQTT-3.1.3-11: a user name that is not UTF-8 closes the connection, a password may be anything",
        arguments: Transport.all)
    func illFormedUserName(transport: Transport) throws {
        try expectIllFormedTextCloses(transport, .userName)
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                flags: 0xC2, payload: RawPacket.field(broker.identifier("client")),
                RawPacket.field("user"), RawPacket.field([0x00, 0xC0, 0x80, 0xFF])))
        try client.expect(.connack(.accepted(sessionPresent: false)))
    }

    private func expectIllFormedTextCloses(_ transport: Transport, _ place: TextPlace) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for text in ["61 C3 28 61", "ED A0 80", "C0 80"] as [WireBytes] {
            let client = try broker.open()
            try client.send(
                bytes: place.packet(text.bytes, identifier: broker.identifier("client")))
            try client.expectClosed()
        }
    }
}
