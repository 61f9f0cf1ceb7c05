import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.15 and 4.12: AUTH and enhanced authentication")
struct Auth5Conformance {
    @Test(
        "MQTT5-4.12.0-1, MQTT5-3.1.2-30: an Authentication Method that is not supported is refused with 0x8C",
        arguments: Transport.all)
    func unknownMethod(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for properties in [
            [Property5.field(0x15, "SCRAM-SHA-256")], [.field(0x15, "")],
            [.field(0x15, "m"), .field(0x16, [1, 2, 3])],
        ] {
            let client = try broker.open()
            try client.send5(broker.connectPacket5("client", properties))
            try client.expectRefused5(0x8C)
        }
    }

    @Test(
        "MQTT5-4.12.0-6, MQTT5-4.12.0-7, MQTT5-3.15.2-1, trap 60: a client that named no method gets none, and AUTH of it is a protocol error, without a second CONNACK",
        arguments: Transport.all)
    func withoutMethod(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for (code, properties) in [
            (UInt8(0x19), [Property5.field(0x15, "m")]), (0x18, [.field(0x15, "m")]), (0x19, []),
            (0x00, [.field(0x15, "m")]), (0x80, [.field(0x15, "m")]),
            (0x19, [.field(0x16, "data")]),
        ] {
            let client = try broker.connect5("client")
            #expect(client.connack?.property(0x15) == nil)
            try client.send5(.auth(code, properties))
            try client.expectEnd5(0x82)
        }
        let short = try broker.connect5("client")
        try short.send(wire: "F0 00")
        try short.expectEnd5(0x82)
    }
}
