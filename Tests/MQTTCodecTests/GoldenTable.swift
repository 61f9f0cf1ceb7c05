import HermesTesting
import MQTTCodec

/// Valid packets by type; each is decoded and encoded.
enum GoldenTable {
    static let all =
        connects + connacks + publishes + acknowledgements + subscriptions + emptyPackets

    static let connects: [GoldenPacket] = [
        GoldenPacket(
            "10 0C 0004 4D515454 04 02 0000 0000", connect("") { _ in },
            "the shortest CONNECT: no client identifier, clean session"),
        GoldenPacket(
            "10 0D 0004 4D515454 04 00 003C 0001 61",
            connect("a") {
                $0.cleanSession = false
                $0.keepAlive = 60
            }, "clean session 0"),
        GoldenPacket(
            "10 0F 0006 4D5149736470 03 02 FFFF 0001 61",
            connect("a") {
                $0.version = .v3_1
                $0.keepAlive = 65_535
            }, "MQTT 3.1 with the longest keep alive"),
        GoldenPacket(
            "10 12 0004 4D515454 04 06 0000 0001 61 0001 77 0000",
            connect("a") { $0.will = .init(topic: "w", message: []) },
            "a will of QoS 0 with an empty message"),
        GoldenPacket(
            "10 13 0004 4D515454 04 0E 0000 0001 61 0001 77 0001 00",
            connect("a") { $0.will = .init(topic: "w", message: [0], qos: .atLeastOnce) },
            "a will message is binary: U+0000 is legal in it"),
        GoldenPacket(
            "10 13 0004 4D515454 04 36 0000 0001 61 0001 77 0001 FF",
            connect("a") {
                $0.will = .init(topic: "w", message: [0xFF], qos: .exactlyOnce, retain: true)
            }, "a retained will of QoS 2"),
        GoldenPacket(
            "10 10 0004 4D515454 04 82 0000 0001 61 0001 75",
            connect("a") { $0.userName = Array("u".utf8) }, "a user name without a password"),
        GoldenPacket(
            "10 0F 0004 4D515454 04 82 0000 0001 61 0000",
            connect("a") { $0.userName = [] }, "an empty user name is not an absent one"),
        GoldenPacket(
            "10 14 0004 4D515454 04 C2 0000 0001 61 0001 75 0002 00FF",
            connect("a") {
                $0.userName = Array("u".utf8)
                $0.password = [0x00, 0xFF]
            }, "a password is binary: ill-formed UTF-8 is legal in it"),
        GoldenPacket(
            "10 1B 0004 4D515454 04 F4 000A 0002 6964 0001 77 0002 6869 0001 75 0001 70",
            connect("id") {
                $0.cleanSession = false
                $0.keepAlive = 10
                $0.will = .init(
                    topic: "w", message: Array("hi".utf8), qos: .exactlyOnce, retain: true)
                $0.userName = Array("u".utf8)
                $0.password = Array("p".utf8)
            }, "every field in its only order [MQTT-3.1.3-1]"),
        GoldenPacket(
            "10 0F 0004 4D515454 04 02 0000 0003 EFBBBF", connect("\u{FEFF}") { _ in },
            "U+FEFF is a character like any other [MQTT-1.5.3-3]"),
    ]

    static let connacks: [GoldenPacket] = [
        GoldenPacket("20 02 00 00", .connack(.accepted(sessionPresent: false)), "a new session"),
        GoldenPacket("20 02 01 00", .connack(.accepted(sessionPresent: true)), "a stored session"),
        GoldenPacket(
            "20 02 00 01", .connack(.refused(.unacceptableProtocolVersion)), "return code 1"),
        GoldenPacket("20 02 00 02", .connack(.refused(.identifierRejected)), "return code 2"),
        GoldenPacket("20 02 00 03", .connack(.refused(.serverUnavailable)), "return code 3"),
        GoldenPacket("20 02 00 04", .connack(.refused(.badUserNameOrPassword)), "return code 4"),
        GoldenPacket("20 02 00 05", .connack(.refused(.notAuthorized)), "return code 5"),
    ]

    static let publishes: [GoldenPacket] = [
        GoldenPacket("30 03 0001 61", .publish(.init(topic: "a")), "the shortest PUBLISH"),
        GoldenPacket("31 03 0001 61", .publish(.init(topic: "a", retain: true)), "RETAIN"),
        GoldenPacket(
            "30 05 0001 61 00FF", .publish(.init(topic: "a", payload: [0x00, 0xFF])),
            "a payload is binary"),
        GoldenPacket(
            "32 05 0001 61 0001", .publish(.init(qos1(1), topic: "a")),
            "QoS 1 with the lowest identifier"),
        GoldenPacket(
            "33 06 0001 61 000A 01",
            .publish(.init(qos1(10), topic: "a", payload: [1], retain: true)), "QoS 1 retained"),
        GoldenPacket(
            "3A 05 0001 61 FFFF", .publish(.init(qos1(65_535, isDuplicate: true), topic: "a")),
            "QoS 1 again, with the highest identifier"),
        GoldenPacket(
            "34 05 0001 61 0100", .publish(.init(qos2(256), topic: "a")),
            "QoS 2; the identifier's upper byte comes first"),
        GoldenPacket(
            "3D 07 0001 61 000B 6869",
            .publish(
                .init(
                    qos2(11, isDuplicate: true), topic: "a", payload: Array("hi".utf8),
                    retain: true)),
            "QoS 2 with DUP and RETAIN"),
        GoldenPacket("30 03 0001 2F", .publish(.init(topic: "/")), "a topic of two empty levels"),
        GoldenPacket(
            "30 06 0004 24535953", .publish(.init(topic: "$SYS")),
            "who may publish to $ is no matter of encoding"),
        GoldenPacket(
            "30 0C 000A EFBBBF 61 F09D849E C3A9", .publish(.init(topic: "\u{FEFF}a\u{1D11E}é")),
            "characters of one to four bytes"),
        GoldenPacket(
            "30 08 0006 EFBFBE 01 0A 7F", .publish(.init(topic: "\u{FFFE}\u{1}\n\u{7F}")),
            "non-characters and control characters are well-formed"),
        GoldenPacket(
            "30 06 0004 F48FBFBF", .publish(.init(topic: "\u{10FFFF}")), "the last code point"),
        GoldenPacket(
            "30 08 0006 ED9FBF EE8080", .publish(.init(topic: "\u{D7FF}\u{E000}")),
            "the neighbours of the surrogates"),
    ]

    static let acknowledgements: [GoldenPacket] = [
        GoldenPacket("40 02 0001", .puback(1), "PUBACK"),
        GoldenPacket("40 02 FFFF", .puback(65_535), "PUBACK of the highest identifier"),
        GoldenPacket("50 02 0102", .pubrec(258), "PUBREC"),
        GoldenPacket("62 02 0001", .pubrel(1), "PUBREL carries flags 0010 [MQTT-3.6.1-1]"),
        GoldenPacket("70 02 8000", .pubcomp(32_768), "PUBCOMP"),
        GoldenPacket("B0 02 000A", .unsuback(10), "UNSUBACK"),
    ]

    static let subscriptions: [GoldenPacket] = [
        GoldenPacket(
            "82 06 000A 0001 61 00", .subscribe(10, [.init("a", .atMostOnce)]), "one filter"),
        GoldenPacket(
            "82 17 0001 0001 23 02 0001 2B 01 0005 2B2F612F23 00 0002 2F2B 02",
            .subscribe(
                1,
                [
                    .init("#", .exactlyOnce), .init("+", .atLeastOnce),
                    .init("+/a/#", .atMostOnce), .init("/+", .exactlyOnce),
                ]),
            "wildcards wherever they may stand"),
        GoldenPacket(
            "82 0A 0001 0005 2B2F2B2F2B 00", .subscribe(1, [.init("+/+/+", .atMostOnce)]),
            "several single-level wildcards [MQTT-4.7.1-3]"),
        GoldenPacket(
            "82 0B 0001 0006 EFBBBF 2F 2B 2F 01",
            .subscribe(1, [.init("\u{FEFF}/+/", .atLeastOnce)]),
            "U+FEFF and an empty last level"),
        GoldenPacket(
            "82 0A 0001 0001 61 00 0001 61 02",
            .subscribe(1, [.init("a", .atMostOnce), .init("a", .exactlyOnce)]),
            "the same filter twice"),
        GoldenPacket("90 03 000A 00", .suback(10, [0]), "SUBACK"),
        GoldenPacket(
            "90 06 000A 00 01 02 80", .suback(10, [0, 1, 2, 0x80]),
            "every return code [MQTT-3.9.3-2]"),
        GoldenPacket("A2 05 000A 0001 61", .unsubscribe(10, [[0x61]]), "UNSUBSCRIBE"),
        GoldenPacket(
            "A2 0B 000A 0001 23 0004 612F2B2F", .unsubscribe(10, [[0x23], Array("a/+/".utf8)]),
            "two filters"),
    ]

    static let emptyPackets: [GoldenPacket] = [
        GoldenPacket("C0 00", .pingreq, "PINGREQ"),
        GoldenPacket("D0 00", .pingresp, "PINGRESP"),
        GoldenPacket("E0 00", .disconnect, "DISCONNECT"),
    ]

    private static func connect(
        _ identifier: String, _ change: (inout PacketContent.Connect) -> Void
    ) -> PacketContent {
        var connect = PacketContent.Connect(clientID: identifier)
        change(&connect)
        return .connect(connect)
    }

    private static func qos1(
        _ identifier: PacketIdentifier, isDuplicate: Bool = false
    ) -> Delivery { .atLeastOnce(identifier, isDuplicate: isDuplicate) }

    private static func qos2(
        _ identifier: PacketIdentifier, isDuplicate: Bool = false
    ) -> Delivery { .exactlyOnce(identifier, isDuplicate: isDuplicate) }
}
