import Testing

extension BrokerUnderTest {
    /// A CONNECT of MQTT 5.0 of this test's client `name`; `expiry` is that of the session in seconds.
    func connectPacket5(
        _ name: String, cleanStart: Bool = true, expiry: UInt32? = nil, keepAlive: UInt16 = 0,
        _ properties: [Property5] = [], will: Packet5.Will? = nil, userName: String? = nil
    ) -> Packet5 {
        .connect(
            identifier(name), cleanStart: cleanStart, keepAlive: keepAlive,
            (expiry.map { [Property5.sessionExpiry($0)] } ?? []) + properties, will: will,
            userName: userName)
    }

    /// A connected client; checks the flags and the code of CONNACK, which the client keeps.
    func connect5(
        _ name: String, cleanStart: Bool = true, expiry: UInt32? = nil, keepAlive: UInt16 = 0,
        _ properties: [Property5] = [], will: Packet5.Will? = nil, userName: String? = nil,
        sessionPresent: Bool = false, _ location: SourceLocation = #_sourceLocation
    ) throws -> Client {
        let client = try open()
        try client.send5(
            connectPacket5(
                name, cleanStart: cleanStart, expiry: expiry, keepAlive: keepAlive, properties,
                will: will, userName: userName))
        try client.accept5(sessionPresent: sessionPresent, location)
        return client
    }

    /// A client with one subscription.
    func subscriber5(
        _ name: String = "subscriber", to filter: String, _ options: UInt8,
        cleanStart: Bool = true, expiry: UInt32? = nil, _ properties: [Property5] = [],
        _ location: SourceLocation = #_sourceLocation
    ) throws -> Client {
        let client = try connect5(
            name, cleanStart: cleanStart, expiry: expiry, properties, location)
        try client.subscribe5(filter, options, [], location)
        return client
    }
}

extension Client {
    /// Takes the CONNACK of an accepted CONNECT and keeps it.
    func accept5(
        sessionPresent: Bool = false, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let packet = try #require(try next5(), "no CONNACK", sourceLocation: location)
        try #require(
            packet.type == 2 && packet.header == [sessionPresent ? 1 : 0, 0],
            "came: \(packet); expected: CONNACK, session present \(sessionPresent)",
            sourceLocation: location)
        connack = packet
    }
}
