import HermesTesting
import MQTTCodec
import Testing

@Suite("Packets from a seeded generator")
struct RoundTripTests {
    @Test(
        "decode to the encoded content, and encode to the same bytes", arguments: UInt64(1)...64)
    func roundTrip(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let content = randomPacket(&random)
            let wire = try content.encoded()
            let decoded = try #require(try decodeFirst(wire), "replay with seed \(seed)")
            #expect(decoded == content, "replay with seed \(seed)")
            #expect(try decoded.encoded() == wire, "replay with seed \(seed)")
        }
    }

    @Test("survive any split of their stream", arguments: UInt64(1)...32)
    func anySplit(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let contents = (0..<12).map { _ in randomPacket(&random) }
        let stream = try contents.flatMap { try $0.encoded() }
        var kept: [UInt8] = []
        var offset = 0
        var decoded: [PacketContent] = []
        while offset < stream.count {
            let end = min(stream.count, offset + random.number(in: 1...40))
            kept += stream[offset..<end]
            offset = end
            while true {
                let framing = try PacketDecoder.frame(kept.span.bytes, at: 0, maximumSize: anySize)
                guard case .frame(let frame) = framing else { break }
                let packet = try PacketDecoder.decode(frame, kept.span.bytes)
                decoded.append(PacketContent(packet, in: kept))
                kept.removeFirst(frame.packet.end)
            }
        }
        #expect(decoded == contents, "replay with seed \(seed)")
        #expect(kept.isEmpty)
    }

    @Test(
        "with flipped bytes are rejected, or decode to their new content",
        arguments: UInt64(1)...64)
    func mutations(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            var wire = try randomPacket(&random).encoded()
            for _ in 0...random.number(in: 0...2) {
                let position = random.number(in: 0...wire.count - 1)
                wire[position] =
                    random.once(in: 2)
                    ? UInt8(random.number(in: 0...255))
                    : wire[position] ^ (1 << random.number(in: 0...7))
            }
            try checkClaim(wire, "replay with seed \(seed)")
        }
    }

    @Test("any bytes yield packets or a malformed packet", arguments: UInt64(1)...64)
    func randomBytes(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            var wire = random.bytes(random.number(in: 0...64))
            // More like a packet: a legal first byte and a correct length.
            if !random.once(in: 4), wire.count > 2 {
                wire[0] = random.pick(PacketType.allCases).firstByte
                wire[1] = UInt8(wire.count - 2)
            }
            try checkClaim(wire, "replay with seed \(seed)")
        }
    }

    /// A decoded packet encodes to the same bytes: nothing was skipped, corrected or added.
    private func checkClaim(_ wire: [UInt8], _ comment: Comment) throws {
        var offset = 0
        do throws(MalformedPacket) {
            while offset < wire.count {
                let framing = try PacketDecoder.frame(
                    wire.span.bytes, at: offset, maximumSize: anySize)
                guard case .frame(let frame) = framing else { return }
                let packet = PacketContent(
                    try PacketDecoder.decode(frame, wire.span.bytes), in: wire)
                let body = Array(wire[frame.body.start..<frame.body.end])
                let taken = WireBytes.packet(wire[offset], body)
                #expect(WireBytes(try packet.encoded()) == taken, comment)
                offset = frame.packet.end
            }
        } catch {
            #expect(!error.statement.isEmpty, comment)
        }
    }
}

// MARK: Random packets

private func randomPacket(_ random: inout SplitMix64) -> PacketContent {
    switch random.pick(PacketType.allCases) {
    case .connect: .connect(randomConnect(&random))
    case .connack:
        random.once(in: 2)
            ? .connack(.accepted(sessionPresent: random.once(in: 2)))
            : .connack(.refused(random.pick(Connack.ReturnCode.allCases)))
    case .publish:
        .publish(
            PacketContent.Publish(
                randomDelivery(&random), topic: randomText(&random, least: 1),
                payload: random.bytes(random.number(in: 0...300)), retain: random.once(in: 2)))
    case .puback: .puback(randomIdentifier(&random))
    case .pubrec: .pubrec(randomIdentifier(&random))
    case .pubrel: .pubrel(randomIdentifier(&random))
    case .pubcomp: .pubcomp(randomIdentifier(&random))
    case .subscribe:
        .subscribe(
            randomIdentifier(&random),
            (0...random.number(in: 0...5)).map { _ in
                .init(randomFilter(&random), random.pick(QoS.allCases))
            })
    case .suback:
        .suback(
            randomIdentifier(&random),
            (0...random.number(in: 0...5)).map { _ in random.pick([0, 1, 2, 0x80]) })
    case .unsubscribe:
        .unsubscribe(
            randomIdentifier(&random),
            (0...random.number(in: 0...5)).map { _ in Array(randomFilter(&random).utf8) })
    case .unsuback: .unsuback(randomIdentifier(&random))
    case .pingreq: .pingreq
    case .pingresp: .pingresp
    case .disconnect: .disconnect
    }
}

private func randomConnect(_ random: inout SplitMix64) -> PacketContent.Connect {
    var connect = PacketContent.Connect(clientID: randomText(&random, least: 0))
    connect.version = random.once(in: 2) ? .v3_1 : .v3_1_1
    connect.cleanSession = random.once(in: 2)
    connect.keepAlive = UInt16(random.number(in: 0...65_535))
    if random.once(in: 2) {
        connect.will = .init(
            topic: randomText(&random, least: 1), message: random.bytes(random.number(in: 0...40)),
            qos: random.pick(QoS.allCases), retain: random.once(in: 2))
    }
    if random.once(in: 2) {
        connect.userName = Array(randomText(&random, least: 0).utf8)
        if random.once(in: 2) { connect.password = random.bytes(random.number(in: 0...40)) }
    }
    return connect
}

private func randomDelivery(_ random: inout SplitMix64) -> Delivery {
    switch random.pick(QoS.allCases) {
    case .atMostOnce: .atMostOnce
    case .atLeastOnce: .atLeastOnce(randomIdentifier(&random), isDuplicate: random.once(in: 2))
    case .exactlyOnce: .exactlyOnce(randomIdentifier(&random), isDuplicate: random.once(in: 2))
    }
}

private func randomIdentifier(_ random: inout SplitMix64) -> PacketIdentifier {
    PacketIdentifier(position: UInt64(random.number(in: 0...65_534)))
}

/// Without wildcards and U+0000; with characters of all encoded sizes.
private func randomText(_ random: inout SplitMix64, least: Int) -> String {
    let alphabet: [Character] = [
        "a", "b", "/", "$", " ", "\u{1}", "é", "€", "\u{FEFF}", "\u{1D11E}",
    ]
    let count = random.number(in: least...30)
    return String((0..<count).map { _ in random.pick(alphabet) })
}

private func randomFilter(_ random: inout SplitMix64) -> String {
    var levels = (0...random.number(in: 0...4)).map { _ in
        random.once(in: 3) ? "+" : randomText(&random, least: 1)
    }
    if random.once(in: 4) { levels.append("#") }
    return levels.joined(separator: "/")
}
