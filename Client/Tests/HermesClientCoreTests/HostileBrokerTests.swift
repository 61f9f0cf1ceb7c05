import MQTTCodec
import Testing

@testable import HermesClientCore

@Suite("A hostile broker")
struct HostileBrokerTests {
    @Test("no packets, damaged or out of place, trap the client or grow it", arguments: 0..<8)
    func packets(part: UInt64) throws {
        var connections = 0
        for seed in part * 250..<(part + 1) * 250 {
            var random = SplitMix64(seed: seed)
            var client = try Driver(seed: seed)
            try client.subscribe("a")
            for number in UInt8(0)..<5 {
                try client.publish([number], qos: random.once(in: 2) ? .atLeastOnce : .exactlyOnce)
            }
            client.connect()
            for _ in 0..<200 {
                client.receive(bytes: Self.bytes(&random, client))
                while let message = client.machine.takeMessage() {
                    if random.once(in: 3) { client.acknowledge(message.number) }
                }
                if random.once(in: 20) { client.pass(Int64(random.number(in: 1...200_000))) }
                if !client.machine.isConnected {
                    client.connect(sessionPresent: random.once(in: 2))
                    connections += 1
                }
                #expect(!client.sent.contains(.wrong), "seed \(seed)")
                client.clear()
            }
            #expect(client.machine.inbox.unacknowledgedCount <= 1_024)
            #expect(try client.restarted().machine.stored == client.machine.stored, "seed \(seed)")
        }
        #expect(connections > 1_000)
    }

    /// A packet of the kinds that a broker sends, about what the client has under way, sometimes
    /// damaged.
    private static func bytes(_ random: inout SplitMix64, _ client: Driver) -> [UInt8] {
        let known = client.machine.stored.outbox.messages.map(\.identifier.rawValue) + [1, 2, 3]
        let identifier = random.pick(known)
        let payload = Array("c/\(random.number(in: 0...3_000))/\(random.number(in: 0...9))".utf8)
        var packet: [UInt8]
        switch random.number(in: 0...11) {
        case 0: packet = Packets.puback(identifier)
        case 1: packet = Packets.pubrec(identifier)
        case 2: packet = Packets.pubcomp(identifier)
        case 3: packet = Packets.pubrel(identifier)
        case 4: packet = Packets.pingresp
        case 5: packet = Packets.suback(client.machine.link?.request?.identifier.rawValue ?? 9, [1])
        case 6: packet = Packets.unsuback(identifier)
        default:
            packet = Packets.publish(
                payload, qos: UInt8(random.number(in: 0...2)),
                identifier: UInt16(random.number(in: 1...40)), isDuplicate: random.once(in: 2))
            if packet[0] & 0x06 == 0 { packet[0] &= 0xF7 }
        }
        if random.once(in: 12) {
            packet[random.number(in: 0...packet.count - 1)] = UInt8(random.number(in: 0...255))
        }
        if random.once(in: 30) { packet = random.bytes(random.number(in: 1...12)) }
        return packet
    }
}
