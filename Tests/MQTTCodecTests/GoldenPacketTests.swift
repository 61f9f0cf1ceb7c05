import HermesTesting
import MQTTCodec
import Testing

@Suite("Golden packets")
struct GoldenPacketTests {
    @Test("decodes to its content", arguments: GoldenTable.all)
    func reads(row: GoldenPacket) throws {
        #expect(try decodeFirst(row.wire.bytes) == row.content)
    }

    @Test("is written byte for byte", arguments: GoldenTable.all)
    func writes(row: GoldenPacket) throws {
        #expect(WireBytes(try row.content.encoded()) == row.wire)
    }

    @Test("is found behind other bytes and in front of others", arguments: GoldenTable.all)
    func standsBetweenOthers(row: GoldenPacket) throws {
        let before: [UInt8] = [0xC0, 0x00, 0x40, 0x02, 0x00, 0x07]
        let stream = before + row.wire.bytes + [0xD0, 0x00]
        let packets = try PacketContent.decode(stream)
        #expect(packets == [.pingreq, .puback(7), row.content, .pingresp])
    }

    @Test("asks for exactly the missing bytes when cut anywhere", arguments: GoldenTable.all)
    func cutAnywhere(row: GoldenPacket) throws {
        // All rows are shorter than 128 bytes, so their fixed header has two bytes.
        for count in 0..<row.wire.count {
            let prefix = Array(row.wire.bytes[..<count])
            let framing = try PacketDecoder.frame(prefix.span.bytes, at: 0, maximumSize: anySize)
            #expect(
                framing == .incomplete(needed: count < 2 ? 0 : row.wire.count), "cut at \(count)")
        }
    }

    @Test("arrives whole when it comes one byte at a time", arguments: GoldenTable.all)
    func oneByteAtATime(row: GoldenPacket) throws {
        var kept: [UInt8] = []
        var packets: [PacketContent] = []
        for byte in row.wire.bytes + row.wire.bytes {
            kept.append(byte)
            guard let packet = try decodeFirst(kept) else { continue }
            packets.append(packet)
            kept.removeAll()
        }
        #expect(packets == [row.content, row.content])
        #expect(kept.isEmpty)
    }

    @Test("fits a limit of its own size and no smaller one", arguments: GoldenTable.all)
    func sizeLimit(row: GoldenPacket) throws {
        #expect(try decodeFirst(row.wire.bytes, maximumSize: row.wire.count) == row.content)
        #expect(throws: MalformedPacket.packetTooLarge) {
            try decodeFirst(row.wire.bytes, maximumSize: row.wire.count - 1)
        }
        // The header is enough, so the broker collects nothing for a rejected packet.
        #expect(throws: MalformedPacket.packetTooLarge) {
            try decodeFirst(Array(row.wire.bytes.prefix(2)), maximumSize: row.wire.count - 1)
        }
    }

    @Test(
        "does not change its meaning with a longer encoding of its length",
        arguments: GoldenTable.all, 2...4)
    func longRemainingLength(row: GoldenPacket, size: Int) throws {
        var length: [UInt8] = Array(repeating: 0x80, count: size)
        length[0] |= row.wire.bytes[1]
        length[size - 1] &= 0x7F
        let wire = [row.wire.bytes[0]] + length + row.wire.bytes[2...]
        #expect(try decodeFirst(wire) == row.content)
        for count in 0..<wire.count {
            let prefix = Array(wire[..<count])
            let framing = try PacketDecoder.frame(prefix.span.bytes, at: 0, maximumSize: anySize)
            #expect(framing == .incomplete(needed: count < 1 + size ? 0 : wire.count))
        }
    }

    @Test("knows its own type", arguments: GoldenTable.all)
    func type(row: GoldenPacket) throws {
        let bytes = row.wire.bytes
        let framing = try PacketDecoder.frame(bytes.span.bytes, at: 0, maximumSize: anySize)
        guard case .frame(let frame) = framing else {
            Issue.record("no frame")
            return
        }
        #expect(frame.type.rawValue == bytes[0] >> 4)
        #expect(frame.packet == ByteRange(offset: 0, count: bytes.count))
        #expect(try PacketDecoder.decode(frame, bytes.span.bytes).type == frame.type)
    }
}

@Suite("Remaining length")
struct RemainingLengthTests {
    /// The borders in table 2.4 (section 2.2.3).
    static let borders: [(value: Int, wire: WireBytes)] = [
        (0, "00"), (1, "01"), (127, "7F"), (128, "80 01"), (16_383, "FF 7F"),
        (16_384, "80 80 01"), (2_097_151, "FF FF 7F"), (2_097_152, "80 80 80 01"),
        (268_435_455, "FF FF FF 7F"),
    ]

    @Test("reads the borders of its sizes", arguments: borders)
    func reads(value: Int, wire: WireBytes) throws {
        let bytes = [0x30] + wire.bytes
        let length = try RemainingLength.decode(bytes.span.bytes, at: 1)
        #expect(length?.value == value)
        #expect(length?.encodedSize == wire.count)
        #expect(RemainingLength.encodedSize(of: value) == wire.count)
        #expect(WireBytes.remainingLength(value) == wire.bytes)
    }

    @Test("claims no memory for a length that is only announced", arguments: borders)
    func announced(value: Int, wire: WireBytes) throws {
        let bytes = [0x30] + wire.bytes
        let framing = try PacketDecoder.frame(bytes.span.bytes, at: 0, maximumSize: anySize)
        if value > 0 {
            #expect(framing == .incomplete(needed: 1 + wire.count + value))
        }
        #expect(throws: MalformedPacket.packetTooLarge) {
            try decodeFirst(bytes, maximumSize: wire.count + value)
        }
    }

    @Test(
        "is malformed when a fourth byte asks for a fifth",
        arguments: ["FF FF FF FF", "80 80 80 80", "80 80 80 80 00", "FF FF FF FF 7F"] as [WireBytes]
    )
    func fiveBytes(wire: WireBytes) {
        let bytes = [0x30] + wire.bytes
        #expect(throws: MalformedPacket.remainingLengthTooLong) { try decodeFirst(bytes) }
    }

    @Test(
        "of a PUBLISH is written at every border",
        arguments: [127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
    func publishBorders(value: Int) throws {
        // Two bytes of topic length, one of topic, two of identifier.
        let payload = [UInt8](repeating: 0xA5, count: value - 5)
        let content = PacketContent.publish(
            .init(.atLeastOnce(7, isDuplicate: false), topic: "a", payload: payload))
        let wire = try content.encoded()
        #expect(Array(wire.prefix(wire.count - value)) == [0x32] + WireBytes.remainingLength(value))
        #expect(try decodeFirst(wire) == content)
        #expect(try decodeFirst(Array(wire.dropLast())) == nil)
        #expect(
            PublishEncoder.size(topicCount: 1, payloadCount: payload.count, qos: .atLeastOnce)
                == wire.count)
    }

    @Test("of SUBSCRIBE and CONNECT is written in two bytes when it must")
    func otherPackets() throws {
        var connect = PacketContent.Connect(clientID: String(repeating: "i", count: 65_535))
        connect.userName = [UInt8](repeating: 0x75, count: 65_535)
        connect.password = [UInt8](repeating: 0xFF, count: 65_535)
        connect.will = .init(
            topic: String(repeating: "w", count: 65_535),
            message: [UInt8](repeating: 0, count: 65_535))
        let largest = PacketContent.connect(connect)
        #expect(try decodeFirst(try largest.encoded()) == largest)

        let filter = String(repeating: "f", count: 65_535)
        let subscribe = PacketContent.subscribe(
            1, [.init(filter, .exactlyOnce), .init("a", .atMostOnce)])
        #expect(try decodeFirst(try subscribe.encoded()) == subscribe)
    }
}
