import HermesTesting
import MQTTCodec

/// Packets of MQTT 5.0 that break a rule: at least one row for each rule of encoding.
enum FaultTable {
    static let all =
        headers + strings + connects + connacks + publishes + acknowledgements + subscriptions
        + others + PropertyFaultTable.all

    static let headers: [FaultRow] = [
        FaultRow("00 00", .reservedPacketType, "section 2.1.2", 0x81, "packet type 0"),
        FaultRow("F1 00", .reservedFlags(.auth), "MQTT-3.15.1-1", 0x81, "AUTH with a flag"),
        FaultRow("11 00", .reservedFlags(.connect), "MQTT-2.1.3-1", 0x81, "CONNECT with a flag"),
        FaultRow(
            "21 03 000000", from: .server, .reservedFlags(.connack), "MQTT-2.1.3-1", 0x81,
            "CONNACK with a flag"),
        FaultRow("42 02 0001", .reservedFlags(.puback), "MQTT-2.1.3-1", 0x81, "PUBACK"),
        FaultRow("52 02 0001", .reservedFlags(.pubrec), "MQTT-2.1.3-1", 0x81, "PUBREC"),
        FaultRow("60 02 0001", .reservedFlags(.pubrel), "MQTT-3.6.1-1", 0x81, "PUBREL without one"),
        FaultRow("63 02 0001", .reservedFlags(.pubrel), "MQTT-3.6.1-1", 0x81, "PUBREL with two"),
        FaultRow("78 02 0001", .reservedFlags(.pubcomp), "MQTT-2.1.3-1", 0x81, "PUBCOMP"),
        FaultRow(
            "80 07 0001 00 0001 61 00", .reservedFlags(.subscribe), "MQTT-3.8.1-1", 0x81,
            "SUBSCRIBE without its flag"),
        FaultRow(
            "A0 06 0001 00 0001 61", .reservedFlags(.unsubscribe), "MQTT-3.10.1-1", 0x81,
            "UNSUBSCRIBE without its flag"),
        FaultRow("C1 00", .reservedFlags(.pingreq), "MQTT-2.1.3-1", 0x81, "PINGREQ"),
        FaultRow("E1 00", .reservedFlags(.disconnect), "MQTT-3.14.1-1", 0x81, "DISCONNECT"),
        FaultRow("20 03 000000", .misdirectedPacket(.connack), "section 2.1.2", 0x82, "trap 12"),
        FaultRow("90 04 0001 00 00", .misdirectedPacket(.suback), "section 2.1.2", 0x82, "trap 12"),
        FaultRow(
            "B0 04 0001 00 00", .misdirectedPacket(.unsuback), "section 2.1.2", 0x82, "trap 12"),
        FaultRow("D0 00", .misdirectedPacket(.pingresp), "section 2.1.2", 0x82, "trap 12"),
        FaultRow(
            "10 0D 0004 4D515454 05 02 0000 00 0000", from: .server, .misdirectedPacket(.connect),
            "section 2.1.2", 0x82, "a server that connects"),
        FaultRow(
            "82 07 0001 00 0001 61 00", from: .server, .misdirectedPacket(.subscribe),
            "section 2.1.2", 0x82, "a server that subscribes"),
        FaultRow(
            "A2 06 0001 00 0001 61", from: .server, .misdirectedPacket(.unsubscribe),
            "section 2.1.2", 0x82, "a server that unsubscribes"),
        FaultRow(
            "C0 00", from: .server, .misdirectedPacket(.pingreq), "section 2.1.2", 0x82,
            "a server that pings"),
        FaultRow(
            "30 FF FF FF FF 7F", .variableByteIntegerTooLong, "section 1.5.5", 0x81,
            "a remaining length of five bytes"),
        FaultRow(
            "30 84 00 0001 61 00", .variableByteIntegerNotMinimal, "MQTT-1.5.5-1", 0x81,
            "a remaining length longer than needed"),
        FaultRow(
            "C0 80 00", .variableByteIntegerNotMinimal, "MQTT-1.5.5-1", 0x81,
            "a remaining length of 0 in two bytes"),
        FaultRow(
            "30 06 0001 61 80 80 00", .variableByteIntegerNotMinimal, "MQTT-1.5.5-1", 0x81,
            "a property length longer than needed"),
        FaultRow(
            "30 08 0001 61 80 80 80 80 00", .variableByteIntegerTooLong, "section 1.5.5", 0x81,
            "a property length of five bytes"),
        FaultRow("C0 01 00", .trailingBytes, "section 2.1.4", 0x81, "PINGREQ with a body"),
        FaultRow(
            "D0 01 00", from: .server, .trailingBytes, "section 2.1.4", 0x81,
            "PINGRESP with a body"),
    ]

    static let strings: [FaultRow] = [
        FaultRow(
            "10 0F 0004 4D515454 05 02 0000 00 0002 C080", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "an overlong form in a client identifier [MQTT-3.1.3-4]"),
        FaultRow(
            "10 10 0004 4D515454 05 02 0000 00 0003 EDA080", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a surrogate in a client identifier"),
        FaultRow(
            "10 0E 0004 4D515454 05 02 0000 00 0001 00", .nullCharacter, "MQTT-1.5.4-2", 0x81,
            "U+0000 in a client identifier"),
        FaultRow(
            "10 14 0004 4D515454 05 06 0000 00 0001 61 00 0001 FF 0000", .illFormedString,
            "MQTT-1.5.4-1", 0x81, "a will topic [MQTT-3.1.3-11]"),
        FaultRow(
            "10 11 0004 4D515454 05 82 0000 00 0001 61 0001 FF", .illFormedString, "MQTT-1.5.4-1",
            0x81, "a user name [MQTT-3.1.3-12]"),
        FaultRow(
            "30 05 0002 61FF 00", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a topic name [MQTT-3.3.2-1]"),
        FaultRow("30 05 0002 6100 00", .nullCharacter, "MQTT-1.5.4-2", 0x81, "[MQTT-4.7.3-2]"),
        FaultRow(
            "82 07 0001 00 0001 FF 00", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a filter [MQTT-3.8.3-1]"),
        FaultRow(
            "82 07 0001 00 0001 00 00", .nullCharacter, "MQTT-1.5.4-2", 0x81, "[MQTT-4.7.3-2]"),
        FaultRow(
            "A2 06 0001 00 0001 FF", .illFormedString, "MQTT-1.5.4-1", 0x81,
            "a filter [MQTT-3.10.3-1]"),
        FaultRow(
            "A2 06 0001 00 0001 00", .nullCharacter, "MQTT-1.5.4-2", 0x81, "U+0000 in a filter"),
    ]

    static let connects: [FaultRow] = [
        FaultRow(
            "10 0D 0004 4D515458 05 02 0000 00 0000", .protocolName, "MQTT-3.1.2-1", 0x84, "MQTX"),
        FaultRow(
            "10 0F 0006 4D5149736470 05 02 0000 00 0000", .protocolName, "MQTT-3.1.2-1", 0x84,
            "the name of MQTT 3.1"),
        FaultRow(
            "10 0C 0004 4D515454 04 02 0000 0000", .unsupportedProtocolLevel(4), "MQTT-3.1.2-2",
            0x84, "level 4"),
        FaultRow(
            "10 0D 0004 4D515454 06 02 0000 00 0000", .unsupportedProtocolLevel(6), "MQTT-3.1.2-2",
            0x84, "level 6"),
        FaultRow(
            "10 0D 0004 4D515454 05 03 0000 00 0000", .connectReservedFlag, "MQTT-3.1.2-3", 0x81,
            "the reserved flag"),
        FaultRow(
            "10 0D 0004 4D515454 05 0A 0000 00 0000", .willQoSWithoutWill, "MQTT-3.1.2-11", 0x81,
            "will QoS 1 without a will"),
        FaultRow(
            "10 0D 0004 4D515454 05 22 0000 00 0000", .willRetainWithoutWill, "MQTT-3.1.2-13", 0x81,
            "will retain without a will"),
        FaultRow(
            "10 14 0004 4D515454 05 1E 0000 00 0001 61 00 0001 77 0000", .willQoS, "MQTT-3.1.2-12",
            0x81, "will QoS 3"),
        FaultRow(
            "10 14 0004 4D515454 05 06 0000 00 0001 61 00 0001 23 0000", .wildcardInTopicName,
            "MQTT-3.3.2-2", 0x90, "a wildcard in a will topic"),
        FaultRow(
            "10 13 0004 4D515454 05 06 0000 00 0001 61 00 0000 0000", .emptyTopicName,
            "MQTT-4.7.3-1", 0x90, "an empty will topic"),
        FaultRow(
            "10 0E 0004 4D515454 05 06 0000 00 0001 61", .truncated, "section 2.1.4", 0x81,
            "a will flag without a will [MQTT-3.1.2-9]"),
        FaultRow(
            "10 0E 0004 4D515454 05 82 0000 00 0001 61", .truncated, "section 2.1.4", 0x81,
            "a user name flag without a user name [MQTT-3.1.2-17]"),
        FaultRow(
            "10 0E 0004 4D515454 05 42 0000 00 0001 61", .truncated, "section 2.1.4", 0x81,
            "a password flag without a password [MQTT-3.1.2-19]"),
        FaultRow(
            "10 11 0004 4D515454 05 02 0000 00 0001 61 0001 75", .trailingBytes, "section 2.1.4",
            0x81, "a user name without its flag [MQTT-3.1.2-16] [MQTT-3.1.2-18]"),
        FaultRow(
            "10 0B 0004 4D515454 05 02 0000 00", .truncated, "section 2.1.4", 0x81,
            "no client identifier [MQTT-3.1.3-3]"),
        FaultRow(
            "10 0A 0004 4D515454 05 02 0000", .truncated, "section 2.1.4", 0x81,
            "no property length"),
        FaultRow(
            "10 0E 0004 4D515454 05 02 0000 00 0002 61", .truncated, "section 2.1.4", 0x81,
            "a client identifier that is cut short [trap 62]"),
        FaultRow(
            "10 11 0004 4D515454 05 02 0000 04 16 0001 00 0000", .authenticationDataWithoutMethod,
            "section 3.1.2.11.10", 0x82, "authentication data alone"),
    ]

    static let connacks: [FaultRow] = [
        FaultRow(
            "20 03 02 00 00", from: .server, .connackFlags, "MQTT-3.2.2-1", 0x81, "a reserved flag"),
        FaultRow(
            "20 03 01 80 00", from: .server, .sessionPresentWithFailure, "MQTT-3.2.2-6", 0x82,
            "session present in a refusal"),
        FaultRow(
            "20 03 00 01 00", from: .server, .reasonCode(.connack), "MQTT-3.2.2-8", 0x82,
            "a return code of 3.1.1"),
        FaultRow(
            "20 03 00 8D 00", from: .server, .reasonCode(.connack), "MQTT-3.2.2-8", 0x82,
            "a code of DISCONNECT"),
        FaultRow("20 02 00 00", from: .server, .truncated, "section 2.1.4", 0x81, "as in 3.1.1"),
        FaultRow(
            "20 04 00 00 00 00", from: .server, .trailingBytes, "section 2.1.4", 0x81,
            "a byte too many"),
        FaultRow(
            "20 07 00 00 04 16 0001 00", from: .server, .authenticationDataWithoutMethod,
            "section 3.1.2.11.10", 0x82, "authentication data alone"),
    ]

    static let publishes: [FaultRow] = [
        FaultRow("36 06 0001 61 0001 00", .publishQoS, "MQTT-3.3.1-4", 0x81, "QoS 3"),
        FaultRow("38 04 0001 61 00", .duplicateAtMostOnce, "MQTT-3.3.1-2", 0x81, "DUP at QoS 0"),
        FaultRow("30 04 0001 2B 00", .wildcardInTopicName, "MQTT-3.3.2-2", 0x90, "+"),
        FaultRow("30 06 0003 612F23 00", .wildcardInTopicName, "MQTT-3.3.2-2", 0x90, "#"),
        FaultRow("30 03 0000 00", .missingTopic, "section 3.3.2.1", 0x82, "neither [trap 43]"),
        FaultRow(
            "30 05 0000 02 01 01", .missingTopic, "section 3.3.2.1", 0x82,
            "other properties are no topic"),
        FaultRow("32 06 0001 61 0000 00", .zeroPacketIdentifier, "MQTT-2.2.1-3", 0x82, "id 0"),
        FaultRow("32 04 0001 61 00", .truncated, "section 2.1.4", 0x81, "no packet identifier"),
        FaultRow("30 03 0001 61", .truncated, "section 2.1.4", 0x81, "no property length"),
        FaultRow("32 05 0001 61 0001", .truncated, "section 2.1.4", 0x81, "no property length"),
        FaultRow("30 03 0002 61", .truncated, "section 2.1.4", 0x81, "a topic cut short"),
        FaultRow("30 01 00", .truncated, "section 2.1.4", 0x81, "half a topic length"),
        FaultRow("30 00", .truncated, "section 2.1.4", 0x81, "nothing"),
    ]

    static let acknowledgements: [FaultRow] =
        [
            (0x40, PacketType5.puback, "MQTT-3.4.2-1", 0x92),
            (0x50, .pubrec, "MQTT-3.5.2-1", 0x92), (0x62, .pubrel, "MQTT-3.6.2-1", 0x80),
            (0x70, .pubcomp, "MQTT-3.7.2-1", 0x10),
        ].flatMap { (first: UInt8, type, statement, foreign: UInt8) in
            [
                FaultRow(
                    WireBytes([first, 3, 0, 1, foreign]), .reasonCode(type), statement, 0x82,
                    "a code of another packet"),
                FaultRow(
                    WireBytes([first, 4, 0, 1, 0xFF, 0]), .reasonCode(type), statement, 0x82,
                    "no code at all"),
                FaultRow(
                    WireBytes([first, 2, 0, 0]), .zeroPacketIdentifier, "MQTT-2.2.1-3", 0x82,
                    "id 0"),
                FaultRow(
                    WireBytes([first, 1, 0]), .truncated, "section 2.1.4", 0x81, "half an id"),
                FaultRow(WireBytes([first, 0]), .truncated, "section 2.1.4", 0x81, "no id"),
                FaultRow(
                    WireBytes([first, 5, 0, 1, 0, 0, 0]), .trailingBytes, "section 2.1.4", 0x81,
                    "a byte too many"),
                FaultRow(
                    WireBytes([first, 4, 0, 1, 0, 1]), .propertyLength, "section 2.2.2.1", 0x81,
                    "properties that are not there"),
            ]
        }

    static let subscriptions: [FaultRow] = [
        FaultRow(
            "82 03 0001 00", .noTopicFilter, "MQTT-3.8.3-2", 0x82, "a SUBSCRIBE without filters"),
        FaultRow(
            "82 07 0001 00 0001 61 40", .subscriptionOptions, "MQTT-3.8.3-5", 0x81,
            "reserved bit 6 [trap 55]"),
        FaultRow(
            "82 07 0001 00 0001 61 80", .subscriptionOptions, "MQTT-3.8.3-5", 0x81,
            "reserved bit 7 [trap 55]"),
        FaultRow("82 07 0001 00 0001 61 03", .requestedQoS, "section 3.8.3.1", 0x82, "QoS 3"),
        FaultRow(
            "82 07 0001 00 0001 61 30", .retainHandling, "section 3.8.3.1", 0x82,
            "retain handling 3"),
        FaultRow(
            "82 10 0001 00 000A 2473686172652F672F61 05", .noLocalOnSharedSubscription,
            "MQTT-3.8.3-4", 0x82, "trap 48"),
        FaultRow(
            "82 14 0001 00 0001 61 04 000A 2473686172652F672F61 04", .noLocalOnSharedSubscription,
            "MQTT-3.8.3-4", 0x82, "the second of two filters [trap 48]"),
        FaultRow(
            "82 07 0000 00 0001 61 00", .zeroPacketIdentifier, "MQTT-2.2.1-3", 0x82, "id 0"),
        FaultRow("82 06 0001 00 0001 61", .truncated, "section 2.1.4", 0x81, "no options"),
        FaultRow("82 07 0001 00 0002 6162", .truncated, "section 2.1.4", 0x81, "no options"),
        FaultRow(
            "A2 03 0001 00", .noTopicFilterToRemove, "MQTT-3.10.3-2", 0x82,
            "an UNSUBSCRIBE without filters"),
        FaultRow("A2 06 0000 00 0001 61", .zeroPacketIdentifier, "MQTT-2.2.1-3", 0x82, "id 0"),
        FaultRow("A2 06 0001 00 0002 61", .truncated, "section 2.1.4", 0x81, "a filter cut short"),
        FaultRow(
            "90 03 0001 00", from: .server, .truncated, "section 2.1.4", 0x81, "no code"),
        FaultRow(
            "90 05 0001 00 00 03", from: .server, .reasonCode(.suback), "MQTT-3.9.3-2", 0x82,
            "QoS 3 granted"),
        FaultRow(
            "90 04 0001 00 11", from: .server, .reasonCode(.suback), "MQTT-3.9.3-2", 0x82,
            "a code of UNSUBACK"),
        FaultRow("90 02 0001", from: .server, .truncated, "section 2.1.4", 0x81, "no length"),
        FaultRow(
            "B0 03 0001 00", from: .server, .truncated, "section 2.1.4", 0x81,
            "as in 3.1.1 [trap 52]"),
        FaultRow(
            "B0 04 0001 00 97", from: .server, .reasonCode(.unsuback), "MQTT-3.11.3-2", 0x82,
            "a code of SUBACK [trap 55]"),
        FaultRow(
            "B0 04 0001 00 A3", from: .server, .reasonCode(.unsuback), "MQTT-3.11.3-2", 0x82,
            "no code at all [trap 55]"),
        FaultRow("B0 02 0001", from: .server, .truncated, "section 2.1.4", 0x81, "no length"),
    ]

    static let others: [FaultRow] = [
        FaultRow("E0 01 FF", .reasonCode(.disconnect), "MQTT-3.14.2-1", 0x82, "trap 4"),
        FaultRow("E0 01 8C", .reasonCode(.disconnect), "MQTT-3.14.2-1", 0x82, "table 2-6 only"),
        FaultRow(
            "E0 01 8E", .reasonCode(.disconnect), "MQTT-3.14.2-1", 0x82, "a server's code"),
        FaultRow(
            "E0 01 04", from: .server, .reasonCode(.disconnect), "MQTT-3.14.2-1", 0x82,
            "a client's code"),
        FaultRow("E0 03 00 00 00", .trailingBytes, "section 2.1.4", 0x81, "a byte too many"),
        FaultRow("E0 02 00 01", .propertyLength, "section 2.2.2.1", 0x81, "no properties"),
        FaultRow("F0 00", .reasonCode(.auth), "MQTT-3.15.2-1", 0x82, "a success of a client"),
        FaultRow(
            "F0 06 19 04 15 0001 6D", from: .server, .reasonCode(.auth), "MQTT-3.15.2-1", 0x82,
            "a server that re-authenticates"),
        FaultRow("F0 01 18", .truncated, "section 2.1.4", 0x81, "no property length"),
        FaultRow("F0 02 18 00", .authWithoutMethod, "section 3.15.2.2.2", 0x82, "no method"),
        FaultRow(
            "F0 06 18 04 16 0001 00", .authWithoutMethod, "section 3.15.2.2.2", 0x82,
            "data without a method"),
        FaultRow(
            "F0 07 18 04 15 0001 6D 00", .trailingBytes, "section 2.1.4", 0x81, "a byte too many"),
    ]
}
