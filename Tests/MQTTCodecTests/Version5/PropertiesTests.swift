import HermesTesting
import MQTTCodec
import Testing

@Suite("Properties of MQTT 5.0")
struct PropertiesTests {
    private func range(_ text: String, in wire: [UInt8]) throws -> ByteRange {
        let bytes = utf8(text)
        let start = try #require(
            (0...wire.count - bytes.count).first { Array(wire[$0..<$0 + bytes.count]) == bytes })
        return ByteRange(offset: start, count: bytes.count)
    }

    @Test("CONNECT: absent properties have their defaults")
    func connectDefaults() {
        let values = ConnectProperties()
        #expect(values.sessionExpiryInterval == 0)
        #expect(values.receiveMaximum == 65_535)
        #expect(values.maximumPacketSize == nil)
        #expect(values.topicAliasMaximum == 0)
        #expect(!values.requestResponseInformation)
        #expect(values.requestProblemInformation)
        #expect(values.authenticationMethod == nil)
        #expect(values.authenticationData == nil)
    }

    @Test("CONNECT: each property goes to its value")
    func connectValues() throws {
        let row = try #require(GoldenTable5.connects.dropFirst(2).first)
        let wire = row.wire.bytes
        guard case .connect(let connect)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        let values = connect.values
        #expect(values.sessionExpiryInterval == .max)
        #expect(values.receiveMaximum == 1)
        #expect(values.maximumPacketSize == 1)
        #expect(values.topicAliasMaximum == 65_535)
        #expect(values.requestResponseInformation)
        #expect(!values.requestProblemInformation)
        #expect(values.authenticationMethod == (try range("SCRAM-SHA-25", in: wire)))
        #expect(values.authenticationData?.count == 2)
    }

    @Test("CONNACK: absent properties have their defaults")
    func connackDefaults() {
        let values = ConnackProperties()
        #expect(values.sessionExpiryInterval == nil)
        #expect(values.receiveMaximum == 65_535)
        #expect(values.maximumQoS == .exactlyOnce)
        #expect(values.retainAvailable)
        #expect(values.maximumPacketSize == nil)
        #expect(values.assignedClientIdentifier == nil)
        #expect(values.topicAliasMaximum == 0)
        #expect(values.wildcardSubscriptionAvailable)
        #expect(values.subscriptionIdentifiersAvailable)
        #expect(values.sharedSubscriptionAvailable)
        #expect(values.serverKeepAlive == nil)
    }

    @Test("CONNACK: each property goes to its value")
    func connackValues() throws {
        let row = try #require(GoldenTable5.connacks.dropFirst(3).first)
        let wire = row.wire.bytes
        guard case .connack(let connack)? = try decodePacket5(wire, from: .server) else {
            throw UnexpectedPacket()
        }
        let values = connack.values
        #expect(values.sessionExpiryInterval == 10)
        #expect(values.receiveMaximum == 20)
        #expect(values.maximumQoS == .atLeastOnce)
        #expect(!values.retainAvailable)
        #expect(values.maximumPacketSize == 65_536)
        #expect(values.assignedClientIdentifier == (try range("id", in: wire)))
        #expect(values.topicAliasMaximum == 5)
        #expect(values.reasonString == (try range("ok", in: wire)))
        #expect(!values.wildcardSubscriptionAvailable)
        #expect(!values.subscriptionIdentifiersAvailable)
        #expect(!values.sharedSubscriptionAvailable)
        #expect(values.serverKeepAlive == 60)
        #expect(
            values.responseInformation
                == connack.properties.field(.responseInformation, in: wire.span.bytes))
        #expect(
            values.serverReference
                == connack.properties.field(.serverReference, in: wire.span.bytes))
        #expect(
            values.authenticationMethod
                == connack.properties.field(.authenticationMethod, in: wire.span.bytes)
        )
        #expect(
            values.authenticationData
                == connack.properties.field(.authenticationData, in: wire.span.bytes))
        #expect(values.authenticationData?.count == 1)
    }

    @Test("PUBLISH: its values are found by name, and nothing is found that is not there")
    func publishLookups() throws {
        let row = try #require(GoldenTable5.publishes.dropFirst(4).first)
        let wire = row.wire.bytes
        guard case .publish(let publish)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        let properties = publish.properties
        #expect(properties.payloadFormat(in: wire.span.bytes) == .utf8)
        #expect(properties.messageExpiryInterval(in: wire.span.bytes) == .max)
        #expect(
            properties.field(.responseTopic, in: wire.span.bytes) == (try range("r/t", in: wire)))
        #expect(
            properties.field(.contentType, in: wire.span.bytes) == (try range("text", in: wire)))
        #expect(properties.field(.correlationData, in: wire.span.bytes)?.count == 2)
        #expect(properties.field(.userProperty, in: wire.span.bytes) == nil)
        #expect(properties.field(.reasonString, in: wire.span.bytes) == nil)
        #expect(publish.topic.alias == TopicAlias(1))
        #expect(publish.topic.name != nil)
        for identifier in PropertyIdentifier.allCases {
            #expect(
                properties.present.contains(identifier)
                    == (properties.first(identifier, in: wire.span.bytes)?.identifier == identifier)
            )
        }
        #expect(Properties.none.payloadFormat(in: wire.span.bytes) == .unspecified)
    }

    @Test(
        "PUBLISH: topic and alias say which of both there is",
        arguments: [
            ("30 04 0001 61 00", true, nil), ("30 07 0001 61 03 23 0005", true, 5),
            ("30 06 0000 03 23 0005", false, 5),
        ] as [(WireBytes, Bool, UInt16?)])
    func topic(wire: WireBytes, hasName: Bool, alias: UInt16?) throws {
        guard case .publish(let publish)? = try decodePacket5(wire.bytes, from: .client) else {
            throw UnexpectedPacket()
        }
        #expect((publish.topic.name != nil) == hasName)
        #expect(publish.topic.alias?.rawValue == alias)
    }

    @Test("a payload is UTF-8 or not, with U+0000, wherever the fault stands")
    func payloadFormat() {
        for length in 0...24 {
            let good = [UInt8](repeating: 0x61, count: length)
            #expect(Self.fits(.utf8, good))
            for position in 0..<length {
                var bytes = good
                bytes[position] = 0
                #expect(Self.fits(.utf8, bytes))
                bytes[position] = 0xC3
                #expect(!Self.fits(.utf8, bytes))
                #expect(Self.fits(.unspecified, bytes))
                if position + 1 < length {
                    bytes[position + 1] = 0xA9
                    #expect(Self.fits(.utf8, bytes))
                }
            }
        }
    }

    private static func fits(_ format: PayloadFormat, _ payload: [UInt8]) -> Bool {
        format.fits(payload.span.bytes, ByteRange(offset: 0, count: payload.count))
    }

    @Test("short packets are the encoder's, byte for byte")
    func shortPackets() throws {
        let answers: [(PacketType5, ReasonCode, PacketContent5)] = [
            (.puback, .success, .puback(0x1234, .success, [])),
            (.puback, .noMatchingSubscribers, .puback(0x1234, .noMatchingSubscribers, [])),
            (.pubrec, .quotaExceeded, .pubrec(0x1234, .quotaExceeded, [])),
            (.pubrel, .success, .pubrel(0x1234, .success, [])),
            (.pubcomp, .packetIdentifierNotFound, .pubcomp(0x1234, .packetIdentifierNotFound, [])),
        ]
        for (type, code, content) in answers {
            #expect(Self.bytes(PacketEncoder5.short(type, 0x1234, code)) == (try content.encoded()))
        }
        for code in [ReasonCode.success, .sessionTakenOver] {
            #expect(
                Self.bytes(PacketEncoder5.short(disconnect: code))
                    == (try PacketContent5.disconnect(code, []).encoded()))
        }
    }

    private static func bytes(_ packet: ShortPacket) -> [UInt8] {
        withUnsafeBytes(of: packet.word.littleEndian) { Array($0.prefix(packet.count)) }
    }

    @Test("an unfinished PUBLISH decodes once its properties have arrived")
    func begunPublish() throws {
        let wire = WireBytes("32 14 0001 61 0007 07 26 0001 6B 0001 76 61 62 63 64 65 66").bytes
        for count in 0...wire.count {
            let prefix = Array(wire.prefix(count))
            guard let frame = PacketDecoder5.begunPublish(prefix.span.bytes, at: 0) else {
                #expect(count < 3)
                continue
            }
            let packet = try? PacketDecoder5.decode(frame, prefix.span.bytes, from: .client)
            #expect((packet != nil) == (count >= 15), "\(count) bytes")
            if case .publish(let publish)? = packet {
                #expect(Int(publish.payload.count) == count - 15)
            }
        }
        #expect(PacketDecoder5.begunPublish([0x40, 0x02, 0, 1].span.bytes, at: 0) == nil)
    }

    @Test("a PUBLISH that no receiver could take has no layout")
    func tooLarge() {
        let most = 268_435_455
        #expect(
            PublishLayout5(topicCount: 1, payloadCount: most - 4, qos: .atMostOnce)?.count == most
                + 5)
        #expect(PublishLayout5(topicCount: 1, payloadCount: most - 3, qos: .atMostOnce) == nil)
        #expect(
            PublishLayout5(
                topicCount: 1, payloadCount: 0, qos: .atMostOnce, forwardedCount: most + 1) == nil)
    }

    @Test("the broker tells version 5 by what the decoder of 3.1.1 throws")
    func version() throws {
        for row in GoldenTable5.connects {
            #expect(throws: MalformedPacket.unsupportedProtocolLevel(PacketDecoder5.protocolLevel))
            { try decodeFirst(row.wire.bytes) }
        }
    }
}
