import HermesTesting
import MQTTCodec
import Testing

/// A packet that paho-mqtt encoded; `scripts/generate-packets5` writes them.
struct ForeignPacket: Sendable, CustomTestStringConvertible {
    let sender: PacketSender
    let wire: WireBytes
    /// The content as ``PacketContent5`` describes it.
    let content: String

    /// A line of the file: sender, bytes, content.
    init?(_ line: Substring) {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count == 3, words[1].allSatisfy(\.isHexDigit) else { return nil }
        sender = words[0] == "client" ? .client : .server
        wire = WireBytes(stringLiteral: String(words[1]))
        content = String(words[2])
    }

    var testDescription: String { "\(content.prefix(100)): \(wire)" }

    /// All lines of `Tests/Packets/paho-5.txt`; none if it cannot be read.
    static let all = TextFile.read("Tests/Packets/paho-5.txt")
        .split(separator: "\n").compactMap { ForeignPacket($0) }
}

@Suite("Packets of MQTT 5.0 from paho-mqtt")
struct ForeignPacketTests {
    @Test("decodes to what was encoded", arguments: ForeignPacket.all)
    func reads(packet: ForeignPacket) throws {
        let content = try #require(try decodeFirst5(packet.wire.bytes, from: packet.sender))
        #expect(content.description == packet.content)
    }

    @Test("is encoded to the same bytes, or fewer that say the same", arguments: ForeignPacket.all)
    func writes(packet: ForeignPacket) throws {
        let content = try #require(try decodeFirst5(packet.wire.bytes, from: packet.sender))
        let wire = try content.encoded()
        switch content {
        case .puback(_, _, []), .pubrec(_, _, []), .pubrel(_, _, []), .pubcomp(_, _, []),
            .disconnect(_, []):
            #expect(wire.count <= packet.wire.count)
            #expect(try decodeFirst5(wire, from: packet.sender) == content)
        default: #expect(WireBytes(wire) == packet.wire)
        }
    }

    @Test("are many, of every type that has content and with every property")
    func complete() {
        #expect(ForeignPacket.all.count > 300)
        let types = Set(ForeignPacket.all.map { $0.wire.bytes[0] >> 4 })
        #expect(types == Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15]))
        for identifier in PropertyIdentifier.allCases {
            let name = PacketContent5.hex([identifier.rawValue]) + "="
            #expect(ForeignPacket.all.contains { $0.content.contains(name) }, "\(identifier)")
        }
    }
}
