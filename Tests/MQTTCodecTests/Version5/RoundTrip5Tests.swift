import HermesTesting
import MQTTCodec
import Testing

@Suite("Packets of MQTT 5.0 from a seeded generator")
struct RoundTrip5Tests {
    @Test("decode to the encoded content, and encode to the same bytes", arguments: UInt64(1)...64)
    func roundTrip(seed: UInt64) throws {
        var packets = RandomPackets5(seed: seed)
        for _ in 0..<50 {
            let content = packets.packet()
            let wire = try content.encoded()
            let decoded = try #require(
                try decodeFirst5(wire, from: content.sender), "replay with seed \(seed)")
            #expect(decoded == content, "replay with seed \(seed)")
            #expect(try decoded.encoded() == wire, "replay with seed \(seed)")
        }
    }

    @Test("say the same when a PUBLISH is encoded in place", arguments: UInt64(1)...64)
    func inPlace(seed: UInt64) throws {
        var packets = RandomPackets5(seed: seed)
        for _ in 0..<20 {
            var publish = packets.publish()
            publish.properties = publish.properties.filter {
                PropertySet.forwarded.contains($0.identifier)
            }
            if publish.topic.isEmpty { publish.topic = [0x61] }
            let wire = try PacketContent5.publish(publish).encoded()
            let decoded = try #require(try decodePacket5(wire, from: .server))
            guard case .publish(let packet) = decoded else {
                Issue.record("\(decoded.type)")
                continue
            }
            let written = EncodedPublish(packet, in: wire, PublishHop())
            #expect(written.bytes == wire, "replay with seed \(seed)")
        }
    }

    @Test(
        "with flipped bytes are refused, or decode to their new content",
        arguments: UInt64(1)...64)
    func mutations(seed: UInt64) throws {
        var packets = RandomPackets5(seed: seed)
        var random = SplitMix64(seed: seed &+ 1_000)
        for _ in 0..<100 {
            let content = packets.packet()
            var wire = try content.encoded()
            for _ in 0...random.number(in: 0...2) {
                let position = random.number(in: 0...wire.count - 1)
                wire[position] =
                    random.once(in: 2)
                    ? UInt8(random.number(in: 0...255))
                    : wire[position] ^ (1 << random.number(in: 0...7))
            }
            do throws(PacketFault) {
                guard let packet = try decodeFirst5(wire, from: content.sender) else { continue }
                // Shorter forms say the same.
                let again = try packet.encoded()
                #expect(try decodeFirst5(again, from: content.sender) == packet)
                #expect(again.count <= wire.count, "replay with seed \(seed)")
            } catch {
                #expect(!error.statement.isEmpty, "replay with seed \(seed)")
            }
        }
    }
}
