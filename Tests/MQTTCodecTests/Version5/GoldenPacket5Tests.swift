import HermesTesting
import MQTTCodec
import Testing

@Suite("Golden packets of MQTT 5.0")
struct GoldenPacket5Tests {
    @Test("decodes to its content", arguments: GoldenTable5.all)
    func reads(row: GoldenPacket5) throws {
        #expect(try decodeFirst5(row.wire.bytes, from: row.content.sender) == row.content)
    }

    @Test("is written byte for byte", arguments: GoldenTable5.all)
    func writes(row: GoldenPacket5) throws {
        #expect(WireBytes(try row.content.encoded()) == row.wire)
    }

    @Test("is found behind other bytes and in front of others", arguments: GoldenTable5.all)
    func standsBetweenOthers(row: GoldenPacket5) throws {
        let stream: [UInt8] = [0x40, 0x02, 0x00, 0x07] + row.wire.bytes + [0x40, 0x02, 0x00, 0x07]
        let sender = row.content.sender
        #expect(try decodeFirst5(stream, at: 4, from: sender) == row.content)
    }

    @Test("asks for exactly the missing bytes when cut anywhere", arguments: GoldenTable5.all)
    func cutAnywhere(row: GoldenPacket5) throws {
        // All rows are shorter than 128 bytes, so their fixed header has two bytes.
        for count in 0..<row.wire.count {
            let prefix = Array(row.wire.bytes[..<count])
            let framing = try PacketDecoder5.frame(
                prefix.span.bytes, at: 0, from: row.content.sender, maximumSize: anySize)
            #expect(
                framing == .incomplete(needed: count < 2 ? 0 : row.wire.count), "cut at \(count)")
        }
    }

    @Test("fits a limit of its own size and no smaller one [trap 29]", arguments: GoldenTable5.all)
    func sizeLimit(row: GoldenPacket5) throws {
        let (bytes, sender) = (row.wire.bytes, row.content.sender)
        #expect(try decodeFirst5(bytes, from: sender, maximumSize: bytes.count) == row.content)
        #expect(throws: PacketFault.packetTooLarge(from: sender)) {
            try decodeFirst5(bytes, from: sender, maximumSize: bytes.count - 1)
        }
        // The header is enough, so the receiver collects nothing for a rejected packet.
        #expect(throws: PacketFault.packetTooLarge(from: sender)) {
            try decodeFirst5(Array(bytes.prefix(2)), from: sender, maximumSize: bytes.count - 1)
        }
    }

    @Test("knows its own type", arguments: GoldenTable5.all)
    func type(row: GoldenPacket5) throws {
        let bytes = row.wire.bytes
        let sender = row.content.sender
        let framing = try PacketDecoder5.frame(
            bytes.span.bytes, at: 0, from: sender, maximumSize: anySize)
        guard case .frame(let frame) = framing else {
            Issue.record("no frame")
            return
        }
        #expect(frame.type.rawValue == bytes[0] >> 4)
        #expect(frame.packet == ByteRange(offset: 0, count: bytes.count))
        #expect(
            try PacketDecoder5.decode(frame, bytes.span.bytes, from: sender).type == frame.type)
    }

    @Test(
        "[MQTT-1.5.5-1] is refused with a longer encoding of its length than needed",
        arguments: GoldenTable5.all, 2...4)
    func longRemainingLength(row: GoldenPacket5, size: Int) throws {
        var length: [UInt8] = Array(repeating: 0x80, count: size)
        length[0] |= row.wire.bytes[1]
        length[size - 1] &= 0x7F
        let wire = [row.wire.bytes[0]] + length + row.wire.bytes[2...]
        #expect(throws: PacketFault.variableByteIntegerNotMinimal) {
            try decodeFirst5(wire, from: row.content.sender)
        }
    }

    @Test(
        "a body that is cut, with a length that says so, is another packet or none",
        arguments: GoldenTable5.all)
    func shortenedBody(row: GoldenPacket5) {
        let body = Array(row.wire.bytes[2...])
        for count in 0..<body.count {
            let wire = WireBytes.packet(row.wire.bytes[0], Array(body[..<count])).bytes
            do throws(PacketFault) {
                let packet = try decodeFirst5(wire, from: row.content.sender)
                // Codes and properties may be left out, and a list or payload may end earlier.
                #expect(packet != row.content, "cut at \(count)")
                switch packet {
                case .publish, .subscribe, .suback, .unsubscribe, .unsuback: break
                case .puback, .pubrec, .pubrel, .pubcomp: #expect(count == 2 || count == 3)
                case .disconnect: #expect(count < 2)
                case .auth: Issue.record("cut at \(count)")
                default: Issue.record("\(WireBytes(wire)) was taken")
                }
            } catch {
                #expect(
                    error.reasonCode == .malformedPacket
                        || [
                            .noTopicFilter, .noTopicFilterToRemove, .missingTopic,
                            .reasonCode(.auth),
                        ]
                        .contains(error),
                    "cut at \(count): \(error)")
            }
        }
    }

    @Test("every type, property and code of its table occurs")
    func complete() {
        var types: Set<PacketType5> = []
        var properties: Set<PropertyIdentifier> = []
        for row in GoldenTable5.all {
            guard let packet = try? decodePacket5(row.wire.bytes, from: row.content.sender)
            else { continue }
            types.insert(packet.type)
            for identifier in PropertyIdentifier.allCases
            where row.content.description.contains(PacketContent5.hex([identifier.rawValue]) + "=")
            {
                properties.insert(identifier)
            }
        }
        #expect(types == Set(PacketType5.allCases))
        #expect(properties == Set(PropertyIdentifier.allCases))
    }
}
