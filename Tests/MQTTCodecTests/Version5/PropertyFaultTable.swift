import HermesTesting
import MQTTCodec

/// Properties that break a rule.
enum PropertyFaultTable {
    static let all = lengths + values + texts + places + repeated + misplaced

    /// A packet of that place around encoded properties; `nil` where the body cannot be the rest of
    /// a valid packet.
    static func packet(_ place: PropertyPlace, _ properties: [UInt8]) -> WireBytes {
        let body = WireBytes.remainingLength(properties.count) + properties
        let name: [UInt8] = [0, 4, 0x4D, 0x51, 0x54, 0x54, 5]
        return switch place {
        case .connect: .packet(0x10, name + [2, 0, 0] + body + [0, 0])
        case .will:
            .packet(0x10, name + [6, 0, 0, 0, 0, 1, 0x61] + body + [0, 1, 0x77, 0, 0])
        case .connack: .packet(0x20, [0, 0] + body)
        case .publish: .packet(0x30, [0, 1, 0x61] + body)
        case .acknowledgement: .packet(0x40, [0, 1, 0] + body)
        case .subscribe: .packet(0x82, [0, 1] + body + [0, 1, 0x61, 0])
        case .unsubscribe: .packet(0xA2, [0, 1] + body + [0, 1, 0x61])
        case .disconnect: .packet(0xE0, [0] + body)
        // With a method at the end, so that nothing else is wrong.
        case .auth, .storedMessage:
            .packet(
                0xF0,
                [0x18] + WireBytes.remainingLength(properties.count + 4) + properties
                    + [0x15, 0, 1, 0x6D])
        }
    }

    static func sender(_ place: PropertyPlace) -> PacketSender {
        switch place {
        case .connect, .will, .acknowledgement, .subscribe, .unsubscribe, .auth, .storedMessage:
            .client
        case .connack: .server
        case .publish(let sender), .disconnect(let sender): sender
        }
    }

    static let allPlaces: [PropertyPlace] = [
        .connect, .will, .connack, .publish(.client), .publish(.server), .acknowledgement,
        .subscribe, .unsubscribe, .disconnect(.client), .disconnect(.server), .auth,
    ]

    /// Each property with a valid value.
    static let samples: [(identifier: PropertyIdentifier, wire: [UInt8])] =
        PropertyIdentifier.allCases.map { identifier in
            let value: [UInt8] =
                switch identifier {
                case .payloadFormatIndicator, .requestProblemInformation,
                    .requestResponseInformation, .maximumQoS, .retainAvailable,
                    .wildcardSubscriptionAvailable, .subscriptionIdentifiersAvailable,
                    .sharedSubscriptionAvailable, .subscriptionIdentifier:
                    [1]
                case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum, .topicAlias: [0, 1]
                case .messageExpiryInterval, .sessionExpiryInterval, .willDelayInterval,
                    .maximumPacketSize:
                    [0, 0, 0, 1]
                case .contentType, .responseTopic, .correlationData, .assignedClientIdentifier,
                    .authenticationMethod, .authenticationData, .responseInformation,
                    .serverReference, .reasonString:
                    [0, 1, 0x61]
                case .userProperty: [0, 1, 0x61, 0, 1, 0x62]
                }
            return (identifier, [identifier.rawValue] + value)
        }

    private static func row(
        _ place: PropertyPlace, _ properties: WireBytes, _ fault: PacketFault, _ statement: String,
        _ code: UInt8, _ reason: String
    ) -> FaultRow {
        FaultRow(
            packet(place, properties.bytes), from: sender(place), fault, statement, code, reason)
    }

    static let lengths: [FaultRow] =
        [
            FaultRow(
                "30 05 0001 61 02 01", .propertyLength, "section 2.2.2.1", 0x81,
                "a property length past the packet"),
            FaultRow(
                "30 06 0001 61 FF7F 01", .propertyLength, "section 2.2.2.1", 0x81,
                "a long one past the packet"),
            row(
                .publish(.client), "02 000000", .truncatedProperty(.messageExpiryInterval),
                "section 2.2.2.2", 0x81, "three bytes of four"),
            row(
                .connect, "21 00", .truncatedProperty(.receiveMaximum), "section 2.2.2.2", 0x81,
                "one byte of two"),
            row(
                .publish(.client), "03 0002 61", .truncatedProperty(.contentType),
                "section 2.2.2.2", 0x81, "a text that leaves the properties"),
            row(
                .publish(.client), "26 0001 61", .truncatedProperty(.userProperty),
                "section 2.2.2.2", 0x81, "a name without a value"),
            row(
                .subscribe, "0B 80", .truncatedProperty(.subscriptionIdentifier),
                "section 2.2.2.2", 0x81, "an identifier that does not end"),
            row(.publish(.client), "00", .unknownProperty, "section 2.2.2.2", 0x81, "0"),
            row(.publish(.client), "7F", .unknownProperty, "section 2.2.2.2", 0x81, "7F"),
            row(
                .publish(.client), "8101 00", .unknownProperty, "section 2.2.2.2", 0x81,
                "an identifier of two bytes"),
            row(
                .publish(.client), "A602 00", .unknownProperty, "section 2.2.2.2", 0x81,
                "one whose lowest byte is known"),
            row(
                .publish(.client), "8100 00", .variableByteIntegerNotMinimal, "MQTT-1.5.5-1", 0x81,
                "an identifier longer than needed"),
            row(
                .subscribe, "0B 8100", .variableByteIntegerNotMinimal, "MQTT-1.5.5-1", 0x81,
                "a subscription identifier longer than needed"),
            row(
                .subscribe, "0B 8080808001", .variableByteIntegerTooLong, "section 1.5.5", 0x81,
                "a subscription identifier of five bytes"),
        ]
        // A value that is not whole is refused for every property.
        + samples.flatMap { sample in
            (1..<sample.wire.count).compactMap { count in
                guard
                    let place = allPlaces.first(where: { $0.allowed.contains(sample.identifier) })
                else { return nil }
                // AUTH appends its method, which then stands within the value.
                return place == .auth
                    ? nil
                    : row(
                        place, WireBytes(Array(sample.wire.prefix(count))),
                        .truncatedProperty(sample.identifier), "section 2.2.2.2", 0x81,
                        "\(sample.identifier) of \(count) bytes")
            }
        }

    static let values: [FaultRow] = [
        row(
            .connect, "21 0000", .propertyValue(.receiveMaximum), "section 3.1.2.11.3", 0x82, "0"),
        row(
            .connack, "21 0000", .propertyValue(.receiveMaximum), "section 3.1.2.11.3", 0x82, "0"),
        row(
            .connect, "27 00000000", .propertyValue(.maximumPacketSize), "section 3.1.2.11.4", 0x82,
            "0"),
        row(
            .connack, "27 00000000", .propertyValue(.maximumPacketSize), "section 3.1.2.11.4", 0x82,
            "0"),
        row(
            .connect, "19 02", .propertyValue(.requestResponseInformation), "section 3.1.2.11.6",
            0x82, "2"),
        row(
            .connect, "17 02", .propertyValue(.requestProblemInformation), "section 3.1.2.11.7",
            0x82, "2"),
        row(
            .will, "01 02", .propertyValue(.payloadFormatIndicator), "section 3.3.2.3.2", 0x82,
            "2"),
        row(
            .publish(.client), "01 FF", .propertyValue(.payloadFormatIndicator),
            "section 3.3.2.3.2", 0x82, "255"),
        row(
            .subscribe, "0B 00", .propertyValue(.subscriptionIdentifier), "section 3.8.2.1.2", 0x82,
            "0 [trap 45]"),
        row(
            .publish(.server), "0B 00", .propertyValue(.subscriptionIdentifier),
            "section 3.8.2.1.2", 0x82, "0 [trap 45]"),
        row(.connack, "24 02", .propertyValue(.maximumQoS), "section 3.2.2.3.4", 0x82, "2"),
        row(.connack, "25 02", .propertyValue(.retainAvailable), "section 3.2.2.3.5", 0x82, "2"),
        row(
            .connack, "28 02", .propertyValue(.wildcardSubscriptionAvailable),
            "section 3.2.2.3.11", 0x82, "2"),
        row(
            .connack, "29 02", .propertyValue(.subscriptionIdentifiersAvailable),
            "section 3.2.2.3.12", 0x82, "2"),
        row(
            .connack, "2A 02", .propertyValue(.sharedSubscriptionAvailable), "section 3.2.2.3.13",
            0x82, "2"),
        row(.publish(.client), "23 0000", .zeroTopicAlias, "MQTT-3.3.2-8", 0x94, "alias 0"),
        row(.publish(.server), "23 0000", .zeroTopicAlias, "MQTT-3.3.2-8", 0x94, "alias 0"),
    ]

    static let texts: [FaultRow] = [
        row(
            .publish(.client), "08 0003 612F23", .wildcardInResponseTopic, "MQTT-3.3.2-14", 0x82,
            "a wildcard in a response topic"),
        row(
            .will, "08 0001 2B", .wildcardInResponseTopic, "MQTT-3.3.2-14", 0x82,
            "a wildcard in a will's response topic"),
        row(
            .publish(.client), "08 0000", .emptyResponseTopic, "MQTT-4.7.3-1", 0x82,
            "an empty response topic"),
        row(
            .publish(.client), "08 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a response topic [MQTT-3.3.2-13]"),
        row(
            .publish(.client), "08 0001 00", .nullCharacter, "MQTT-1.5.4-2", 0x81,
            "U+0000 in a response topic"),
        row(
            .publish(.client), "03 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a content type [MQTT-3.3.2-19]"),
        row(
            .publish(.client), "03 0001 00", .nullCharacter, "MQTT-1.5.4-2", 0x81,
            "U+0000 in a content type"),
        row(
            .publish(.client), "26 0001 FF 0000", .illFormedStringPair, "MQTT-1.5.7-1", 0x81,
            "a name"),
        row(
            .publish(.client), "26 0000 0001 FF", .illFormedStringPair, "MQTT-1.5.7-1", 0x81,
            "a value"),
        row(
            .connect, "26 0000 0001 00", .illFormedStringPair, "MQTT-1.5.7-1", 0x81,
            "U+0000 in a value"),
        row(.connect, "15 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81, "a method"),
        row(.connack, "12 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81, "an assigned name"),
        row(.connack, "1A 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81, "information"),
        row(.connack, "1C 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81, "a reference"),
        row(.acknowledgement, "1F 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81, "a reason"),
    ]

    static let places: [FaultRow] = [
        row(
            .publish(.client), "0B 01", .subscriptionIdentifierOfClient, "MQTT-3.3.4-6", 0x82,
            "trap 44"),
        row(
            .disconnect(.server), "11 00000000", .sessionExpiryOfServer, "MQTT-3.14.2-2", 0x82,
            "a server's session expiry"),
        row(
            .publish(.client), "18 00000001", .misplacedProperty(.willDelayInterval),
            "section 2.2.2.2", 0x81, "a will's property [trap 8]"),
        row(
            .publish(.client), "1F 0001 72", .misplacedProperty(.reasonString), "section 2.2.2.2",
            0x81, "a known property of another packet [trap 56]"),
    ]

    /// Each property twice, wherever it may stand once (trap 57).
    static let repeated: [FaultRow] = allPlaces.flatMap { place in
        samples.filter { place.allowed.contains($0.identifier) }.compactMap { sample in
            let mayRepeat =
                sample.identifier == .userProperty
                || place == .publish(.server) && sample.identifier == .subscriptionIdentifier
            // AUTH has its method at the end already.
            let count = place == .auth && sample.identifier == .authenticationMethod ? 1 : 2
            return mayRepeat
                ? nil
                : row(
                    place, WireBytes((0..<count).flatMap { _ in sample.wire }),
                    .repeatedProperty(sample.identifier), "section 2.2.2.2", 0x82,
                    "\(sample.identifier) twice in \(place) [trap 57]")
        }
    }

    /// Table 2-4: the packets of each property.
    static let table: [PropertyIdentifier: [PropertyPlace]] = {
        let messages: [PropertyPlace] = [.publish(.client), .publish(.server), .will]
        let disconnects: [PropertyPlace] = [.disconnect(.client), .disconnect(.server)]
        return [
            .payloadFormatIndicator: messages, .messageExpiryInterval: messages,
            .contentType: messages, .responseTopic: messages, .correlationData: messages,
            .subscriptionIdentifier: [.publish(.server), .subscribe],
            .sessionExpiryInterval: [.connect, .connack, .disconnect(.client)],
            .assignedClientIdentifier: [.connack], .serverKeepAlive: [.connack],
            .authenticationMethod: [.connect, .connack, .auth],
            .authenticationData: [.connect, .connack, .auth],
            .requestProblemInformation: [.connect], .willDelayInterval: [.will],
            .requestResponseInformation: [.connect], .responseInformation: [.connack],
            .serverReference: [.connack, .disconnect(.server)],
            .reasonString: [.connack, .acknowledgement, .auth] + disconnects,
            .receiveMaximum: [.connect, .connack], .topicAliasMaximum: [.connect, .connack],
            .topicAlias: [.publish(.client), .publish(.server)], .maximumQoS: [.connack],
            .retainAvailable: [.connack], .userProperty: allPlaces,
            .maximumPacketSize: [.connect, .connack], .wildcardSubscriptionAvailable: [.connack],
            .subscriptionIdentifiersAvailable: [.connack],
            .sharedSubscriptionAvailable: [.connack],
        ]
    }()

    /// Each property in each packet that may not have it, by table 2-4.
    static let misplaced: [FaultRow] = samples.flatMap { sample in
        let right = table[sample.identifier, default: []]
        return allPlaces.filter { !right.contains($0) }.compactMap { place -> FaultRow? in
            switch (place, sample.identifier) {
            case (.publish(.client), .subscriptionIdentifier),
                (.disconnect(.server), .sessionExpiryInterval):
                return nil
            default:
                return row(
                    place, WireBytes(sample.wire), .misplacedProperty(sample.identifier),
                    "section 2.2.2.2", 0x81, "\(sample.identifier) in \(place) [trap 56]")
            }
        }
    }
}
