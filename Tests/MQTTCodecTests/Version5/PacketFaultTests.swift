import HermesTesting
import MQTTCodec
import Testing

@Suite("Packets of MQTT 5.0 that break a rule")
struct PacketFaultTests {
    @Test("is refused for the rule that it breaks", arguments: FaultTable.all)
    func refused(row: FaultRow) {
        #expect(throws: row.fault) { try decodeFirst5(row.wire.bytes, from: row.sender) }
        #expect(row.fault.statement == row.statement)
        #expect(row.fault.reasonCode.rawValue == row.code)
        #expect(!row.fault.explanation.isEmpty)
    }

    @Test("is refused in the middle of a stream too", arguments: FaultTable.all)
    func refusedBehindAnother(row: FaultRow) {
        let stream = [0x40, 0x02, 0x00, 0x07] + row.wire.bytes + [0x40, 0x02, 0x00, 0x07]
        #expect(throws: row.fault) { try decodeFirst5(stream, at: 4, from: row.sender) }
    }

    @Test("never yields a packet when cut, nor another fault", arguments: FaultTable.all)
    func cutAnywhere(row: FaultRow) {
        for count in 0..<row.wire.count {
            do throws(PacketFault) {
                let packet = try decodeFirst5(
                    Array(row.wire.bytes[..<count]), from: row.sender)
                #expect(packet == nil, "cut at \(count)")
            } catch {
                // Rejected early: the violation is in the bytes so far.
                #expect(error == row.fault, "cut at \(count)")
            }
        }
    }

    @Test("a code that refuses CONNECT is one of CONNACK, and any other one of DISCONNECT")
    func codes() {
        for row in FaultTable.all {
            let type: PacketType5 = row.wire.bytes[0] >> 4 == 1 ? .connack : .disconnect
            let code = row.fault.reasonCode
            // A client refuses with a client's codes.
            let receiver: PacketSender = row.sender == .client ? .server : .client
            #expect(
                code.isAllowed(in: type, from: type == .connack ? .server : receiver),
                "\(row.testDescription)")
        }
    }

    @Test("every rule has a row")
    func complete() {
        let kinds = Set(FaultTable.all.map { Self.kind($0.fault) })
        let known: Set<String> = [
            "reservedPacketType", "misdirectedPacket", "reservedFlags",
            "variableByteIntegerTooLong", "variableByteIntegerNotMinimal", "truncated",
            "trailingBytes", "illFormedString", "nullCharacter", "illFormedStringPair",
            "zeroPacketIdentifier", "propertyLength", "unknownProperty", "misplacedProperty",
            "truncatedProperty", "repeatedProperty", "propertyValue", "zeroTopicAlias",
            "subscriptionIdentifierOfClient", "sessionExpiryOfServer", "emptyResponseTopic",
            "wildcardInResponseTopic", "authenticationDataWithoutMethod", "authWithoutMethod",
            "protocolName", "unsupportedProtocolLevel", "connectReservedFlag",
            "willQoSWithoutWill", "willRetainWithoutWill", "willQoS", "connackFlags",
            "sessionPresentWithFailure", "reasonCode", "publishQoS", "duplicateAtMostOnce",
            "missingTopic", "emptyTopicName", "wildcardInTopicName", "noTopicFilter",
            "noTopicFilterToRemove", "subscriptionOptions", "requestedQoS", "retainHandling",
            "noLocalOnSharedSubscription",
        ]
        #expect(kinds == known)
        #expect(FaultTable.all.count > GoldenTable5.all.count)
    }

    @Test("the statement of each fault is one of the standard's")
    func statements() {
        // No row can show a limit, nor what is wrong with a filter alone.
        let others: [PacketFault] = [
            .packetTooLarge(from: .client), .packetTooLarge(from: .server),
            .misplacedMultiLevelWildcard, .misplacedSingleLevelWildcard, .emptyTopicFilter,
        ]
        let statements = (FaultTable.all.map(\.fault) + others).map(\.statement)
            .filter { $0.hasPrefix("MQTT-") }.map { String($0.dropFirst("MQTT-".count)) }
        let listed = ["Behaviour", "Connecting", "DataRepresentation", "Packets"].flatMap {
            TextFile.read("Tests/ConformanceTests/Statements/Statement+\($0)5.swift")
                .matches(of: #/five: "([^"]+)"/#).map { String($0.1) }
        }
        #expect(listed.count > 200)
        #expect(Set(statements).subtracting(listed) == [])
    }

    /// The case without its values.
    private static func kind(_ fault: PacketFault) -> String {
        String("\(fault)".prefix { $0 != "(" })
    }

    @Test(
        "a packet above the limit is refused before it arrives, in CONNECT too [trap 62]",
        arguments: PacketSender.allCases)
    func tooLarge(sender: PacketSender) {
        let fault = PacketFault.packetTooLarge(from: sender)
        #expect(throws: fault) {
            try decodeFirst5([0x30, 0xFF, 0xFF, 0xFF, 0x7F], from: sender, maximumSize: 1_000)
        }
        #expect(fault.reasonCode == .packetTooLarge)
        #expect(fault.statement == (sender == .client ? "MQTT-3.2.2-15" : "MQTT-3.1.2-24"))
    }

    @Test(
        "every first byte is judged before anything else is read", arguments: PacketSender.allCases)
    func firstBytes(sender: PacketSender) {
        let ofClient: Set<UInt8> = [1, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15]
        let ofServer: Set<UInt8> = [2, 3, 4, 5, 6, 7, 9, 11, 13, 14, 15]
        for first in UInt8.min...UInt8.max {
            let (type, flags) = (first >> 4, first & 0x0F)
            let isSent = (sender == .client ? ofClient : ofServer).contains(type)
            let isRight =
                isSent && (type == 3 || flags == ([6, 8, 10].contains(type) ? 2 : 0))
            do throws(PacketFault) {
                let framing = try PacketDecoder5.frame(
                    [first].span.bytes, at: 0, from: sender, maximumSize: anySize)
                #expect(framing == .incomplete(needed: 0))
                #expect(isRight, "first byte \(first)")
            } catch {
                #expect(!isRight, "first byte \(first)")
            }
        }
    }

    @Test("table 2-4: a property stands where the table says, and nowhere else")
    func propertyTable() throws {
        for sample in PropertyFaultTable.samples {
            let places = try #require(PropertyFaultTable.table[sample.identifier])
            for place in PropertyFaultTable.allPlaces where places.contains(place) {
                // AUTH has its method anyway, and data elsewhere needs one.
                guard !(place == .auth && sample.identifier == .authenticationMethod) else {
                    continue
                }
                var properties = sample.wire
                if place != .auth, sample.identifier == .authenticationData {
                    properties += [0x15, 0, 1, 0x6D]
                }
                let wire = PropertyFaultTable.packet(place, properties)
                #expect(
                    try decodeFirst5(wire.bytes, from: PropertyFaultTable.sender(place)) != nil,
                    "\(sample.identifier) in \(place)")
            }
        }
    }

    @Test("table 2-6: a code stands in the packets that the table of each names")
    func codeTable() {
        let both: Set<UInt8> = [
            0x00, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
        ]
        let server: Set<UInt8> = [
            0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1,
            0xA2,
        ]
        let received: Set<UInt8> = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
        let tables: [(PacketType5, PacketSender, Set<UInt8>)] = [
            (
                .connack, .server,
                [
                    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C,
                    0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
                ]
            ),
            (.puback, .client, received), (.puback, .server, received),
            (.pubrec, .client, received), (.pubrec, .server, received),
            (.pubrel, .client, [0x00, 0x92]), (.pubcomp, .server, [0x00, 0x92]),
            (
                .suback, .server,
                [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2]
            ),
            (.unsuback, .server, [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]),
            (.disconnect, .client, both.union([0x04])), (.disconnect, .server, both.union(server)),
            (.auth, .client, [0x18, 0x19]), (.auth, .server, [0x00, 0x18]),
            (.publish, .server, []), (.pingreq, .client, []),
        ]
        for (type, sender, codes) in tables {
            let allowed = ReasonCode.allCases.filter { $0.isAllowed(in: type, from: sender) }
            #expect(Set(allowed.map(\.rawValue)) == codes, "\(type) from \(sender)")
        }
    }
}
