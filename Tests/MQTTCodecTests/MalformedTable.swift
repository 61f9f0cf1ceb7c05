import HermesTesting
import MQTTCodec

/// Malformed packets by rule. With the generated rows of ``MalformedPacketTests`` they outnumber
/// the valid ones.
enum MalformedTable {
    static let all =
        fixedHeaders + connects + connacks + publishes + topicNames + filters + requests
        + acknowledgements + emptyPackets

    static let fixedHeaders: [MalformedRow] = [
        MalformedRow("00 00", .reservedPacketType, "packet type 0"),
        MalformedRow("F0 00", .reservedPacketType, "packet type 15"),
        MalformedRow("12 00", .reservedFlags, "CONNECT with SUBSCRIBE's flags"),
        MalformedRow("60 02 0001", .reservedFlags, "PUBREL without its flags [MQTT-3.6.1-1]"),
        MalformedRow("80 06 000A 0001 61 00", .reservedFlags, "SUBSCRIBE 0000 [MQTT-3.8.1-1]"),
        MalformedRow("8A 06 000A 0001 61 00", .reservedFlags, "SUBSCRIBE with a DUP of 3.1"),
        MalformedRow("A0 05 000A 0001 61", .reservedFlags, "UNSUBSCRIBE 0000 [MQTT-3.10.1-1]"),
        MalformedRow("E1 00", .reservedFlags, "DISCONNECT 0001 [MQTT-3.14.1-1]"),
        MalformedRow("30 FF FF FF FF 01", .remainingLengthTooLong, "a length of five bytes"),
        MalformedRow("C0 80 80 80 80 00", .remainingLengthTooLong, "zero in five bytes"),
    ]

    static let connects: [MalformedRow] = [
        MalformedRow("10 00", .truncated, "an empty CONNECT"),
        MalformedRow("10 0C 0004 4D515458 04 02 0000 0000", .protocolName, "MQTX"),
        MalformedRow("10 0C 0004 6D717474 04 02 0000 0000", .protocolName, "mqtt in lower case"),
        MalformedRow("10 0B 0003 4D5154 04 02 0000 0000", .protocolName, "MQT"),
        MalformedRow("10 0D 0005 4D51545454 04 02 0000 0000", .protocolName, "MQTTT"),
        MalformedRow("10 08 0000 04 02 0000 0000", .protocolName, "an empty protocol name"),
        MalformedRow("10 0E 0006 4D5149534450 03 02 0000 0000", .protocolName, "MQISDP"),
        MalformedRow(
            "10 0C 0004 4D515454 05 02 0000 0000", .unsupportedProtocolLevel(5),
            "MQTT 5 [MQTT-3.1.2-2]"),
        MalformedRow(
            "10 0D 0004 4D515454 05 02 0000 00 0000", .unsupportedProtocolLevel(5),
            "MQTT 5 with its property length"),
        MalformedRow(
            "10 0C 0004 4D515454 03 02 0000 0000", .unsupportedProtocolLevel(3),
            "the level of 3.1 with the name of 3.1.1"),
        MalformedRow(
            "10 0E 0006 4D5149736470 04 02 0000 0000", .unsupportedProtocolLevel(4),
            "the level of 3.1.1 with the name of 3.1"),
        MalformedRow(
            "10 0C 0004 4D515454 00 02 0000 0000", .unsupportedProtocolLevel(0), "level 0"),
        MalformedRow(
            "10 0C 0004 4D515454 84 02 0000 0000", .unsupportedProtocolLevel(0x84),
            "the bridge bit of other brokers"),
        MalformedRow(
            "10 07 0004 4D515454 05", .unsupportedProtocolLevel(5),
            "the level is judged before what follows it"),
        MalformedRow(
            "10 0C 0004 4D515454 04 03 0000 0000", .connectReservedFlag,
            "connect flag 0 [MQTT-3.1.2-3]"),
        MalformedRow(
            "10 0E 0006 4D5149736470 03 03 0000 0000", .connectReservedFlag, "the same in 3.1"),
        MalformedRow(
            "10 0C 0004 4D515454 04 0A 0000 0000", .willFlagsWithoutWill,
            "will QoS 1 without a will [MQTT-3.1.2-13]"),
        MalformedRow(
            "10 0C 0004 4D515454 04 12 0000 0000", .willFlagsWithoutWill,
            "will QoS 2 without a will"),
        MalformedRow(
            "10 0C 0004 4D515454 04 22 0000 0000", .willFlagsWithoutWill,
            "will retain without a will [MQTT-3.1.2-15]"),
        MalformedRow(
            "10 12 0004 4D515454 04 1E 0000 0001 61 0001 77 0000", .willQoS,
            "will QoS 3 [MQTT-3.1.2-14]"),
        MalformedRow("10 0C 0004 4D515454 04 1A 0000 0000", .willQoS, "will QoS 3, no will"),
        MalformedRow(
            "10 0F 0004 4D515454 04 42 0000 0000 0001 70", .passwordWithoutUserName,
            "a password alone [MQTT-3.1.2-22]"),
        MalformedRow("10 0A 0004 4D515454 04 02 0000", .truncated, "no client identifier"),
        MalformedRow(
            "10 0D 0004 4D515454 04 02 0000 0002 61", .truncated, "a client identifier cut off"),
        MalformedRow(
            "10 0C 0004 4D515454 04 82 0000 0000", .truncated,
            "the user name flag without a user name [MQTT-3.1.2-19]"),
        MalformedRow(
            "10 0F 0004 4D515454 04 C2 0000 0000 0001 75", .truncated,
            "the password flag without a password [MQTT-3.1.2-21]"),
        MalformedRow(
            "10 0C 0004 4D515454 04 06 0000 0000", .truncated, "the will flag without a will"),
        MalformedRow(
            "10 0F 0004 4D515454 04 06 0000 0000 0001 77", .truncated, "a will without a message"),
        MalformedRow(
            "10 0F 0004 4D515454 04 02 0000 0000 0001 75", .trailingBytes,
            "a user name without its flag [MQTT-3.1.2-18]"),
        MalformedRow(
            "10 12 0004 4D515454 04 82 0000 0000 0001 75 0001 70", .trailingBytes,
            "a password without its flag [MQTT-3.1.2-20]"),
        MalformedRow(
            "10 0F 0004 4D515454 04 02 0000 0001 61 0000", .trailingBytes,
            "a will without its flag [MQTT-3.1.2-11]"),
        MalformedRow(
            "10 0D 0004 4D515454 04 02 0000 0001 80", .illFormedString,
            "a client identifier that is not UTF-8 [MQTT-3.1.3-4]"),
        MalformedRow(
            "10 0D 0004 4D515454 04 02 0000 0001 00", .nullCharacter,
            "U+0000 in a client identifier"),
        MalformedRow(
            "10 10 0004 4D515454 04 82 0000 0000 0002 C080", .illFormedString,
            "an overlong U+0000 in a user name [MQTT-3.1.3-11]"),
        MalformedRow(
            "10 0F 0004 4D515454 04 82 0000 0000 0001 00", .nullCharacter,
            "U+0000 in a user name"),
        MalformedRow(
            "10 10 0004 4D515454 04 06 0000 0000 0000 0000", .emptyTopic, "an empty will topic"),
        MalformedRow(
            "10 11 0004 4D515454 04 06 0000 0000 0001 2B 0000", .wildcardInTopicName,
            "a wildcard in a will topic"),
        MalformedRow(
            "10 13 0004 4D515454 04 06 0000 0000 0003 EDA080 0000", .illFormedString,
            "a surrogate in a will topic [MQTT-3.1.3-10]"),
    ]

    static let connacks: [MalformedRow] = [
        MalformedRow("20 00", .truncated, "an empty CONNACK"),
        MalformedRow("20 01 00", .truncated, "CONNACK without a return code"),
        MalformedRow("20 03 00 00 00", .trailingBytes, "CONNACK with a byte too many"),
        MalformedRow("20 02 02 00", .reservedFlags, "a reserved acknowledge flag"),
        MalformedRow("20 02 80 00", .reservedFlags, "the highest reserved acknowledge flag"),
        MalformedRow("20 02 00 06", .returnCode, "the first undefined return code"),
        MalformedRow("20 02 00 FF", .returnCode, "the last undefined return code"),
        MalformedRow(
            "20 02 01 05", .reservedFlags, "session present with a refusal [MQTT-3.2.2-4]"),
    ]

    static let publishes: [MalformedRow] = [
        MalformedRow("36 05 0001 61 000A", .publishQoS, "QoS 3 [MQTT-3.3.1-4]"),
        MalformedRow("3E 05 0001 61 000A", .publishQoS, "QoS 3 with DUP"),
        MalformedRow("3F 05 0001 61 000A", .publishQoS, "QoS 3 with DUP and RETAIN"),
        MalformedRow("38 03 0001 61", .duplicateAtMostOnce, "DUP on QoS 0 [MQTT-3.3.1-2]"),
        MalformedRow("39 03 0001 61", .duplicateAtMostOnce, "DUP and RETAIN on QoS 0"),
        MalformedRow("32 05 0001 61 0000", .zeroPacketIdentifier, "QoS 1, identifier 0"),
        MalformedRow("34 05 0001 61 0000", .zeroPacketIdentifier, "QoS 2, identifier 0"),
        MalformedRow("32 03 0001 61", .truncated, "QoS 1 without an identifier"),
        MalformedRow("34 04 0001 61 00", .truncated, "QoS 2 with half an identifier"),
        MalformedRow("30 00", .truncated, "an empty PUBLISH"),
        MalformedRow("30 01 00", .truncated, "half a topic length"),
        MalformedRow("30 02 0001", .truncated, "a topic length without a topic"),
        MalformedRow("30 03 0002 61", .truncated, "a topic that ends beyond its packet"),
        MalformedRow("30 03 FFFF 61", .truncated, "the longest topic in the shortest packet"),
        MalformedRow("30 02 0000", .emptyTopic, "an empty topic name [MQTT-4.7.3-1]"),
        MalformedRow("32 04 0000 0001", .emptyTopic, "an empty topic name with QoS 1"),
    ]

    static let topicNames: [MalformedRow] =
        [
            ("2B", .wildcardInTopicName, "+ alone [MQTT-3.3.2-2]"),
            ("23", .wildcardInTopicName, "# alone"),
            ("612F2B2F62", .wildcardInTopicName, "a/+/b"),
            ("612F23", .wildcardInTopicName, "a/#"),
            ("612B", .wildcardInTopicName, "a+: not even inside a level"),
            ("6161616161616161 23", .wildcardInTopicName, "# as the ninth byte"),
            ("61616161616161 2B 61616161", .wildcardInTopicName, "+ as the eighth byte"),
            ("C3A9 2B", .wildcardInTopicName, "+ behind a character of two bytes"),
            ("00", .nullCharacter, "U+0000 alone [MQTT-1.5.3-2]"),
            ("61006262626262626262", .nullCharacter, "U+0000 in the first word"),
            ("6262626262626262 00", .nullCharacter, "U+0000 as the ninth byte"),
            ("C080", .illFormedString, "U+0000 in two bytes"),
            ("C1BF", .illFormedString, "an overlong ASCII character"),
            ("E08080", .illFormedString, "U+0000 in three bytes"),
            ("E09FBF", .illFormedString, "an overlong character of two bytes"),
            ("F0808080", .illFormedString, "U+0000 in four bytes"),
            ("F08FBFBF", .illFormedString, "an overlong character of three bytes"),
            ("EDA080", .illFormedString, "U+D800, the first surrogate [MQTT-1.5.3-1]"),
            ("EDBFBF", .illFormedString, "U+DFFF, the last surrogate"),
            ("EDA0B4EDB49E", .illFormedString, "a pair of surrogates"),
            ("F4908080", .illFormedString, "U+110000, beyond the last code point"),
            ("F5808080", .illFormedString, "a lead byte beyond F4"),
            ("F8888080 80", .illFormedString, "five bytes, as before 2003"),
            ("FF", .illFormedString, "FF"),
            ("FE", .illFormedString, "FE"),
            ("80", .illFormedString, "a continuation without a start"),
            ("61BF", .illFormedString, "a continuation behind ASCII"),
            ("C3", .illFormedString, "a character of two bytes cut off"),
            ("E282", .illFormedString, "a character of three bytes cut off"),
            ("F09D84", .illFormedString, "a character of four bytes cut off"),
            ("C341", .illFormedString, "ASCII in place of a continuation"),
            ("E28241", .illFormedString, "ASCII in place of the third byte"),
            ("F09D8441", .illFormedString, "ASCII in place of the fourth byte"),
            ("E282C0", .illFormedString, "a start in place of a continuation"),
            ("61616161616161 C3", .illFormedString, "cut off at a word's end"),
        ].map { (topic: WireBytes, error: MalformedPacket, reason: String) in
            MalformedRow(.packet(0x30, WireBytes.field(topic.bytes)), error, reason)
        }

    /// Each filter in a SUBSCRIBE and in an UNSUBSCRIBE.
    static let filters: [MalformedRow] =
        [
            ("", .emptyTopic, "an empty filter [MQTT-4.7.3-1]"),
            ("612F23 2F62", .misplacedMultiLevelWildcard, "a/#/b [MQTT-4.7.1-2]"),
            ("61 23", .misplacedMultiLevelWildcard, "a#"),
            ("23 61", .misplacedMultiLevelWildcard, "#a"),
            ("23 2F", .misplacedMultiLevelWildcard, "#/"),
            ("23 23", .misplacedMultiLevelWildcard, "##"),
            ("2F23 23", .misplacedMultiLevelWildcard, "/##"),
            ("2B 23", .misplacedSingleLevelWildcard, "+#"),
            ("61 2B", .misplacedSingleLevelWildcard, "a+ [MQTT-4.7.1-3]"),
            ("2B 61", .misplacedSingleLevelWildcard, "+a"),
            ("2B 2B", .misplacedSingleLevelWildcard, "++"),
            ("612F 61 2B 2F62", .misplacedSingleLevelWildcard, "a/a+/b"),
            ("612F 2B 61 2F62", .misplacedSingleLevelWildcard, "a/+a/b"),
            ("C3A9 2B", .misplacedSingleLevelWildcard, "é+"),
            ("61 00", .nullCharacter, "U+0000"),
            ("EDA080", .illFormedString, "a surrogate [MQTT-3.8.3-1]"),
            ("2B2F C080", .illFormedString, "an overlong U+0000 behind a wildcard"),
        ].flatMap { (filter: WireBytes, error: MalformedPacket, reason: String) in
            let field = WireBytes.field(filter.bytes)
            return [
                MalformedRow(.packet(0x82, [0, 1] + field + [0]), error, reason),
                MalformedRow(.packet(0xA2, [0, 1] + field), error, reason),
                MalformedRow(
                    .packet(0x82, [0, 1, 0, 1, 0x61, 0] + field + [0]), error,
                    "\(reason) as the second filter"),
                MalformedRow(
                    .packet(0xA2, [0, 1, 0, 1, 0x61] + field), error,
                    "\(reason) as the second filter"),
            ]
        }

    static let requests: [MalformedRow] = [
        MalformedRow("82 02 000A", .noTopicFilter, "an empty SUBSCRIBE [MQTT-3.8.3-3]"),
        MalformedRow("A2 02 000A", .noTopicFilterToRemove, "an empty UNSUBSCRIBE [MQTT-3.10.3-2]"),
        MalformedRow("82 00", .truncated, "SUBSCRIBE without an identifier"),
        MalformedRow("82 01 00", .truncated, "SUBSCRIBE with half an identifier"),
        MalformedRow("A2 00", .truncated, "UNSUBSCRIBE without an identifier"),
        MalformedRow("82 06 0000 0001 61 00", .zeroPacketIdentifier, "SUBSCRIBE, identifier 0"),
        MalformedRow("A2 05 0000 0001 61", .zeroPacketIdentifier, "UNSUBSCRIBE, identifier 0"),
        MalformedRow("82 06 000A 0001 61 03", .requestedQoS, "QoS 3 [MQTT-3.8.3-4]"),
        MalformedRow("82 06 000A 0001 61 04", .requestedQoS, "the lowest reserved bit"),
        MalformedRow("82 06 000A 0001 61 80", .requestedQoS, "the highest reserved bit"),
        MalformedRow("82 06 000A 0001 61 FF", .requestedQoS, "all bits"),
        MalformedRow("82 05 000A 0001 61", .truncated, "a filter without its QoS"),
        MalformedRow("82 07 000A 0001 61 00 00", .truncated, "half a second filter"),
        MalformedRow("82 06 000A 0002 61 01", .truncated, "a filter that swallows its QoS"),
        MalformedRow("A2 05 000A 0002 61", .truncated, "a filter that ends beyond its packet"),
        MalformedRow("A2 06 000A 0001 61 00", .truncated, "UNSUBSCRIBE with a QoS behind it"),
        MalformedRow("90 02 000A", .truncated, "SUBACK without a return code"),
        MalformedRow("90 03 0000 00", .zeroPacketIdentifier, "SUBACK, identifier 0"),
        MalformedRow("90 03 000A 03", .returnCode, "SUBACK with return code 3 [MQTT-3.9.3-2]"),
        MalformedRow("90 04 000A 00 81", .returnCode, "SUBACK with return code 0x81"),
        MalformedRow("90 03 000A 7F", .returnCode, "SUBACK with return code 0x7F"),
    ]

    static let acknowledgements: [MalformedRow] = ([0x40, 0x50, 0x62, 0x70, 0xB0] as [UInt8])
        .flatMap { first in
            [
                MalformedRow(.packet(first, []), .truncated, "no identifier"),
                MalformedRow(.packet(first, [0]), .truncated, "half an identifier"),
                MalformedRow(.packet(first, [0, 0]), .zeroPacketIdentifier, "identifier 0"),
                MalformedRow(.packet(first, [0, 1, 0]), .trailingBytes, "a reason code of 5.0"),
                MalformedRow(
                    .packet(first, [0, 1] + [UInt8](repeating: 0, count: 200)), .trailingBytes,
                    "a long tail"),
            ]
        }

    static let emptyPackets: [MalformedRow] = ([0xC0, 0xD0, 0xE0] as [UInt8]).flatMap { first in
        [
            MalformedRow(.packet(first, [0]), .trailingBytes, "one byte of body"),
            MalformedRow(.packet(first, [0, 0]), .trailingBytes, "two bytes of body"),
        ]
    }
}
