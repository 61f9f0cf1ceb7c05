import HermesTesting
import MQTTCodec
import Testing

@Suite("3.9 SUBACK")
struct SubackConformance {
    @Test(
        "MQTT-3.9.3-1: return codes stand in the order of the filters", arguments: Transport.all)
    func orderOfReturnCodes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let deep = String(repeating: "/", count: 127)
        var requests: [PacketContent.Request] = []
        var codes: [UInt8] = []
        for number in 0..<200 {
            let kind = number * 7 % 4
            let qos = QoS(rawValue: UInt8(kind)) ?? .atMostOnce
            requests.append(
                PacketContent.Request(broker.topic(kind == 3 ? deep : "\(number)"), qos))
            codes.append(kind == 3 ? 0x80 : UInt8(kind))
        }
        try client.send(.subscribe(0x1234, requests))
        try client.expectBytes(RawPacket.packet(0x90, [0x12, 0x34] + codes))
        try client.expectNothing()
    }

    @Test(
        "MQTT-3.9.3-2: only the return codes 0x00, 0x01, 0x02 and 0x80 are used",
        arguments: Transport.all)
    func definedReturnCodes(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect("client")
        let filters = [
            "a", "#", "+/a", "$SYS/#", "/", "//", "a/", String(repeating: "/", count: 127),
            String(repeating: "a/", count: 200) + "#", String(repeating: "x", count: 60_000),
        ]
        for (index, filter) in filters.enumerated() {
            for qos in QoS.allCases {
                try client.send(
                    bytes: RawPacket.subscribe(
                        UInt16(index + 1), filter: Array(broker.topic(filter).utf8),
                        requestedQoS: qos.rawValue))
                guard case .suback(_, let codes)? = try client.next() else {
                    Issue.record("no SUBACK for \(filter.prefix(20))")
                    return
                }
                #expect(codes == [qos.rawValue] || codes == [0x80], "\(filter.prefix(20))")
            }
        }
    }
}
