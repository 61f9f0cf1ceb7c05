import HermesTesting
import MQTTCodec
import Testing

@Suite("2.2 Fixed header")
struct FixedHeaderConformance {
    /// A well-formed packet of each type that clients send, except CONNECT and PUBLISH.
    static let clientPackets: [WireBytes] = [
        "40 02 00 01", "50 02 00 01", "62 02 00 01", "70 02 00 01",
        "82 06 00 01 00 01 61 00", "A2 05 00 01 00 01 61", "C0 00", "E0 00",
    ]

    @Test(
        "MQTT-2.2.2-1: every packet that the broker sends has the flags of its type",
        arguments: Transport.all)
    func flagsOfTheBroker(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = Array(broker.topic("a").utf8)
        let client = try broker.open()
        try client.send(bytes: try broker.connectPacket("client").encoded())
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        try client.send(bytes: RawPacket.subscribe(9, filter: topic, requestedQoS: 2))
        try client.expectBytes([0x90, 0x03, 0x00, 0x09, 0x02])
        let publisher = try broker.connect("publisher")
        try publisher.send(bytes: RawPacket.publish(firstByte: 0x32, topic: topic, identifier: 7))
        try publisher.expectBytes([0x40, 0x02, 0x00, 0x07])
        try publisher.send(bytes: RawPacket.publish(firstByte: 0x34, topic: topic, identifier: 8))
        try publisher.expectBytes([0x50, 0x02, 0x00, 0x08])
        try publisher.send(wire: "62 02 00 08")
        try publisher.expectBytes([0x70, 0x02, 0x00, 0x08])
        try client.expectBytes(RawPacket.publish(firstByte: 0x32, topic: topic, identifier: 1))
        try client.expectBytes(RawPacket.publish(firstByte: 0x34, topic: topic, identifier: 2))
        try client.send(wire: "50 02 00 02")
        try client.expectBytes([0x62, 0x02, 0x00, 0x02])
        try client.send(bytes: RawPacket.unsubscribe(10, filter: topic))
        try client.expectBytes([0xB0, 0x02, 0x00, 0x0A])
        try client.send(wire: "C0 00")
        try client.expectBytes([0xD0, 0x00])
    }

    @Test(
        "MQTT-2.2.2-2: flags that a packet type does not allow close the connection",
        arguments: Transport.all, clientPackets)
    func wrongFlags(transport: Transport, packet: WireBytes) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for flags in 0..<UInt8(16) where flags != packet.bytes[0] & 0x0F {
            let client = try broker.connect("client")
            try client.send(bytes: [packet.bytes[0] & 0xF0 | flags] + packet.bytes.dropFirst())
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT-2.2.2-2: a CONNECT with flags closes the connection, and opens no session",
        arguments: Transport.all)
    func wrongFlagsOfConnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let connect = try broker.connectPacket("client", cleanSession: false).encoded()
        for flags in UInt8(1)..<16 {
            let client = try broker.open()
            try client.send(bytes: [0x10 | flags] + connect.dropFirst())
            try client.expectClosed()
        }
        // There is still no session of this name.
        _ = try broker.connect("client", cleanSession: false, sessionPresent: false)
    }
}
