import HermesTesting
import MQTTCodec
import Testing

/// The faults of other brokers that a codec can have; what each is, is in the test's title.
@Suite("Traps of MQTT 5.0 for a codec")
struct Traps5Tests {
    private func connect(_ properties: WireBytes) throws -> Connect5 {
        let wire = PropertyFaultTable.packet(.connect, properties.bytes).bytes
        guard case .connect(let connect)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        return connect
    }

    private func publish(_ wire: [UInt8], from sender: PacketSender = .client) throws -> Publish5 {
        guard case .publish(let publish)? = try decodePacket5(wire, from: sender) else {
            throw UnexpectedPacket()
        }
        return publish
    }

    @Test("trap 8: the will delay is the will's, and not among what its PUBLISH has")
    func willDelay() throws {
        let wire = PropertyFaultTable.packet(
            .will,
            WireBytes("18 00000005 26 0001 61 0001 62 02 0000000A 01 01").bytes
        ).bytes
        guard case .connect(let connect)? = try decodePacket5(wire, from: .client),
            let will = connect.will
        else { throw UnexpectedPacket() }
        #expect(will.delayInterval == 5)
        #expect(will.messageExpiryInterval == 10)
        let forwarded = ForwardedProperties(will.properties, in: wire.span.bytes)
        #expect(copied(forwarded, wire) == WireBytes("26 0001 61 0001 62 01 01"))
    }

    @Test("trap 11: the work for user properties is linear in their bytes")
    func manyUserProperties() throws {
        // 20,000 of them, decoded and walked over; a square of that would not end.
        let properties = (0..<20_000).flatMap { _ in [0x26, 0, 0, 0, 0] as [UInt8] }
        let wire = PropertyFaultTable.packet(.connect, properties).bytes
        guard case .connect(let connect)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        var cursor = connect.properties.cursor
        var count = 0
        while cursor.next(in: wire.span.bytes) != nil { count += 1 }
        #expect(count == 20_000)
    }

    @Test("trap 16: a DISCONNECT without session expiry leaves it as it was")
    func sessionExpiryOfDisconnect() throws {
        for (wire, expected) in [
            ("E0 00", nil), ("E0 02 00 00", nil), ("E0 07 00 05 11 00000000", 0),
            ("E0 07 00 05 11 FFFFFFFF", .max),
        ] as [(WireBytes, UInt32?)] {
            guard case .disconnect(let packet)? = try decodePacket5(wire.bytes, from: .client)
            else { throw UnexpectedPacket() }
            #expect(packet.properties.sessionExpiryInterval(in: wire.bytes.span.bytes) == expected)
        }
    }

    @Test("trap 17: a CONNECT without session expiry means 0, with either clean start")
    func sessionExpiryOfConnect() throws {
        #expect(try connect("").values.sessionExpiryInterval == 0)
        #expect(try connect("11 0000000A").values.sessionExpiryInterval == 10)
        #expect(try connect("11 FFFFFFFF").values.sessionExpiryInterval == .max)
    }

    @Test("trap 27: message expiry 0 is not its absence, and survives")
    func expiryZero() throws {
        let wire = WireBytes("30 09 0001 61 05 02 00000000").bytes
        let packet = try publish(wire)
        #expect(packet.properties.messageExpiryInterval(in: wire.span.bytes) == 0)
        let plain = WireBytes("30 04 0001 61 00").bytes
        #expect(try publish(plain).properties.messageExpiryInterval(in: plain.span.bytes) == nil)
    }

    @Test("trap 30: a reason that makes the answer too large for its receiver is left out")
    func reasonThatDoesNotFit() throws {
        let reason = utf8("no room")
        let answers: [ControlPacket5] = [
            .connack(.refused(.quotaExceeded)), .puback(.init(1, .quotaExceeded)),
            .pubrec(.init(1, .quotaExceeded)), .pubrel(.init(1, .packetIdentifierNotFound)),
            .pubcomp(.init(1)), .disconnect(.init(.quotaExceeded)),
            .suback(.init(packetIdentifier: 1, codes: ByteRange(offset: 0, count: 1))),
            .unsuback(.init(packetIdentifier: 1, codes: ByteRange(offset: 0, count: 1))),
            .auth(
                .init(
                    .continueAuthentication,
                    properties: try Properties(
                        checking: ByteRange(offset: 1, count: 4), in: source.span.bytes, for: .auth)
                )),
        ]
        for answer in answers {
            let plain = encoded(answer, nil, .max)
            let full = try #require(encoded(answer, reason, .max))
            let content = try #require(try decodeFirst5(full, from: .server))
            #expect(content.description.contains("1f=" + PacketContent5.hex(reason)))
            #expect(encoded(answer, reason, full.count) == full)
            #expect(encoded(answer, reason, full.count - 1) == plain)
            #expect(encoded(answer, reason, plain?.count ?? 0) == plain)
            #expect(encoded(answer, reason, (plain?.count ?? 0) - 1) == [], "[MQTT-3.1.2-24]")
        }
    }

    /// A code of SUBACK and UNSUBACK, and a method.
    private let source: [UInt8] = [0x00, 0x15, 0, 1, 0x6D]

    private func encoded(
        _ packet: ControlPacket5, _ reason: [UInt8]?, _ maximumSize: Int
    ) -> [UInt8]? {
        var output: [UInt8] = []
        source.withUnsafeBytes { source in
            guard let reason else {
                PacketEncoder5.append(packet, fieldsIn: source, to: &output)
                return
            }
            reason.withUnsafeBytes { reason in
                let fits = PacketEncoder5.append(
                    packet, fieldsIn: source, reasonString: reason, maximumSize: maximumSize,
                    to: &output)
                #expect(fits == !output.isEmpty)
            }
        }
        return output
    }

    @Test("traps 39 and 44: a publisher's alias, expiry and identifiers stay on their hop")
    func perHop() throws {
        let wire = WireBytes(
            """
            30 24 0001 61 1E 23 0001 26 0001 6B 0001 76 0B 07 02 0000000A 0B 08 03 0001 63
              26 0001 6B 0001 77 6869
            """
        ).bytes
        let packet = try publish(wire, from: .server)
        let forwarded = ForwardedProperties(packet.properties, in: wire.span.bytes)
        #expect(
            copied(forwarded, wire)
                == WireBytes("26 0001 6B 0001 76 03 0001 63 26 0001 6B 0001 77"))
        let sent = EncodedPublish(packet, in: wire, PublishHop())
        #expect(
            WireBytes(sent.bytes)
                == WireBytes(
                    "30 18 0001 61 12 26 0001 6B 0001 76 03 0001 63 26 0001 6B 0001 77 6869")
        )
    }

    @Test("trap 42: an alias is added to the other properties and replaces none")
    func addedAlias() throws {
        let wire = WireBytes("32 0F 0001 61 0007 07 26 0001 6B 0001 76 6869").bytes
        let packet = try publish(wire)
        let identifiers = [SubscriptionIdentifier(268_435_455), SubscriptionIdentifier(1)]
            .compactMap { $0 }
        identifiers.withUnsafeBufferPointer { identifiers in
            let hop = PublishHop(
                messageExpiryInterval: 10, topicAlias: TopicAlias(3),
                subscriptionIdentifiers: identifiers)
            let first = EncodedPublish(packet, in: wire, hop)
            #expect(
                WireBytes(first.bytes)
                    == """
                    32 1E 0001 61 0007 16 02 0000000A 23 0003 0B FFFFFF7F 0B 01
                      26 0001 6B 0001 76 6869
                    """)
            #expect(first.layout.count == first.bytes.count)
            let later = EncodedPublish(packet, in: wire, hop, keepsTopic: false)
            #expect(
                WireBytes(later.bytes)
                    == """
                    32 1D 0000 0007 16 02 0000000A 23 0003 0B FFFFFF7F 0B 01
                      26 0001 6B 0001 76 6869
                    """)
        }
    }

    @Test("traps 22 and 26: the expiry of an encoded message is patched where it stands")
    func patchedExpiry() throws {
        for first: UInt8 in [0x30, 0x32] {
            let identifier: [UInt8] = first == 0x30 ? [] : [0, 7]
            // A property length of two bytes.
            let pair: [UInt8] = [0x26, 0, 1, 0x6B, 0, 200] + [UInt8](repeating: 0x76, count: 200)
            let wire = WireBytes.packet(
                first,
                [0, 1, 0x61] + identifier + WireBytes.remainingLength(pair.count) + pair + [0x68]
            ).bytes
            let packet = try publish(wire)
            var sent = EncodedPublish(packet, in: wire, PublishHop(messageExpiryInterval: 1))
            sent.bytes.withUnsafeMutableBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                PublishEncoder5.storeExpiry(0xA1B2_C3D4, to: base + sent.layout.messageExpiryOffset)
                if first == 0x32 {
                    PublishEncoder.storeInteger(9, to: base + sent.layout.packetIdentifierOffset)
                }
            }
            let again = try publish(sent.bytes)
            #expect(
                again.properties.messageExpiryInterval(in: sent.bytes.span.bytes) == 0xA1B2_C3D4)
            #expect(
                again.delivery
                    == (first == 0x30 ? .atMostOnce : .atLeastOnce(9, isDuplicate: false)))
        }
    }

    @Test("traps 45 and 46: a SUBSCRIBE has one identifier or none, up to the largest")
    func subscriptionIdentifier() throws {
        for (wire, expected) in [
            ("82 07 0001 00 0001 61 00", nil),
            ("82 0C 0001 05 0B FFFFFF7F 0001 61 00", 268_435_455),
        ] as [(WireBytes, UInt32?)] {
            guard case .subscribe(let packet)? = try decodePacket5(wire.bytes, from: .client)
            else { throw UnexpectedPacket() }
            #expect(packet.subscriptionIdentifier?.rawValue == expected)
        }
        #expect(SubscriptionIdentifier(0) == nil)
        #expect(SubscriptionIdentifier(268_435_456) == nil)
    }

    @Test("trap 53: one bad filter among several is refused alone, with 0x8F")
    func badFilter() throws {
        let wire = WireBytes(
            "82 19 0001 00 0001 61 01 0003 23 2F 61 00 0000 00 0002 612B 00 0001 2B 02"
        ).bytes
        guard case .subscribe(var subscribe)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        #expect(subscribe.count == 5)
        var outcomes: [PacketFault?] = []
        while let request = subscribe.next(in: wire.span.bytes) {
            switch request.filter.filter {
            case .success(let filter):
                #expect(filter.range == request.filter.text)
                outcomes.append(nil)
            case .failure(let fault):
                #expect(fault.reasonCode == .topicFilterInvalid)
                #expect(fault.reasonCode.isAllowed(in: .suback, from: .server))
                outcomes.append(fault)
            }
        }
        #expect(
            outcomes == [
                nil, .misplacedMultiLevelWildcard, .emptyTopicFilter,
                .misplacedSingleLevelWildcard, nil,
            ])
        #expect(
            outcomes.compactMap { $0?.statement } == [
                "MQTT-4.7.1-1", "MQTT-4.7.3-1", "MQTT-4.7.1-2",
            ])
    }

    @Test("trap 53: the same for UNSUBSCRIBE")
    func badFilterToRemove() throws {
        let wire = WireBytes("A2 0A 0001 00 0002 612B 0001 61").bytes
        guard case .unsubscribe(var packet)? = try decodePacket5(wire, from: .client) else {
            throw UnexpectedPacket()
        }
        #expect(packet.count == 2)
        #expect(
            packet.next(in: wire.span.bytes)?.filter == .failure(.misplacedSingleLevelWildcard))
        #expect(packet.next(in: wire.span.bytes)?.text.count == 1)
        #expect(packet.next(in: wire.span.bytes) == nil)
    }

    @Test("trap 58: stored properties are checked when they come back")
    func storedProperties() throws {
        let kept = WireBytes("01 01 26 0001 6B 0001 76 03 0001 63").bytes
        let all = ByteRange(offset: 0, count: kept.count)
        let forwarded = try ForwardedProperties(stored: all, in: kept.span.bytes)
        #expect(copied(forwarded, kept) == WireBytes(kept))
        for (damaged, fault) in [
            ("26 0001 6B 0001", .truncatedProperty(.userProperty)),
            ("23 0001", .misplacedProperty(.topicAlias)),
            ("02 00000001", .misplacedProperty(.messageExpiryInterval)),
            ("03 0001 FF", .illFormedString), ("7F", .unknownProperty),
        ] as [(WireBytes, PacketFault)] {
            let range = ByteRange(offset: 0, count: damaged.count)
            #expect(throws: fault) {
                try ForwardedProperties(stored: range, in: damaged.bytes.span.bytes)
            }
        }
    }

    @Test(
        "trap 64: a DISCONNECT of length 2 with code and property length 0 is valid",
        arguments: [("E0 02 00 00", .success), ("E0 02 04 00", .disconnectWithWill)]
            as [(WireBytes, ReasonCode)])
    func disconnectOfLengthTwo(wire: WireBytes, code: ReasonCode) throws {
        #expect(try decodeFirst5(wire.bytes, from: .client) == .disconnect(code, []))
    }

    private func copied(_ forwarded: ForwardedProperties, _ wire: [UInt8]) -> WireBytes {
        var output = [UInt8](repeating: 0, count: forwarded.count)
        output.withUnsafeMutableBytes { output in
            guard let base = output.baseAddress else { return }
            wire.withUnsafeBytes { forwarded.copy(to: base, from: $0) }
        }
        return WireBytes(output)
    }
}

/// A packet is not of the type that the test wrote.
struct UnexpectedPacket: Error {}
