import HermesTesting
import MQTTCodec
import Testing

/// A field of a packet that holds a string.
enum TextPlace: CaseIterable, Sendable, CustomTestStringConvertible {
    case clientID, willTopic, userName, topicName, filterToAdd, filterToRemove

    var testDescription: String { "\(self)" }

    /// A packet with `text` in this place; CONNECT for the first three.
    func packet(_ text: [UInt8], identifier: String) -> [UInt8] {
        switch self {
        case .clientID:
            RawPacket.connect(flags: 0x02, payload: RawPacket.field(text))
        case .willTopic:
            RawPacket.connect(
                flags: 0x06, payload: RawPacket.field(identifier), RawPacket.field(text),
                RawPacket.field("will"))
        case .userName:
            RawPacket.connect(
                flags: 0x82, payload: RawPacket.field(identifier), RawPacket.field(text))
        case .topicName:
            RawPacket.publish(firstByte: 0x32, topic: text, identifier: 1, payload: [0x78])
        case .filterToAdd: RawPacket.subscribe(filter: text)
        case .filterToRemove: RawPacket.unsubscribe(filter: text)
        }
    }

    var isInConnect: Bool {
        switch self {
        case .clientID, .willTopic, .userName: true
        case .topicName, .filterToAdd, .filterToRemove: false
        }
    }
}

@Suite("1.5.3 UTF-8 strings")
struct UTF8StringConformance {
    /// Ill-formed by the Unicode standard's table of well-formed byte sequences, each for one reason.
    static let illFormed: [WireBytes] = [
        "ED A0 80", "ED BF BF",  // the first and the last surrogate
        "C0 80", "C1 BF", "E0 80 80", "E0 9F BF", "F0 80 80 80", "F0 8F BF BF",  // overlong
        "F4 90 80 80", "F5 80 80 80", "F8 88 80 80 80",  // above U+10FFFF
        "C3", "E2 82", "F0 9F 98", "C3 28", "E2 82 28",  // cut off
        "80", "BF", "FE", "FF",  // no first byte
    ]

    /// Sends text in a place; the broker must close without an answer.
    private func expectRefusal(
        _ broker: BrokerUnderTest, _ text: [UInt8], in place: TextPlace
    ) throws {
        let client = place.isInConnect ? try broker.open() : try broker.connect("client")
        try client.send(
            bytes: place.packet(text, identifier: broker.identifier("refused")))
        try client.expectClosed()
    }

    @Test(
        "MQTT-1.5.3-1: ill-formed text in any string closes the connection",
        arguments: Transport.all, TextPlace.allCases)
    func illFormedText(transport: Transport, place: TextPlace) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for text in Self.illFormed {
            // Alone, and within a longer text.
            try expectRefusal(broker, text.bytes, in: place)
            try expectRefusal(
                broker, Array("0123456789abcdef".utf8) + text.bytes + Array("z".utf8), in: place)
        }
    }

    @Test(
        "MQTT-1.5.3-1: well-formed text of every length of character passes unchanged",
        arguments: Transport.all)
    func wellFormedText(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let text = "\u{7F}\u{80}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}"
        let client = try broker.open()
        try client.send(
            bytes: RawPacket.connect(
                flags: 0x86, payload: RawPacket.field(broker.identifier(text)),
                RawPacket.field(broker.topic("will")), RawPacket.field("x"),
                RawPacket.field(text)))
        try client.expect(.connack(.accepted(sessionPresent: false)))
        let topic = broker.topic(text)
        try client.subscribe(topic, .atMostOnce)
        try client.send(.publish(topic, text))
        try client.expectBytes(
            RawPacket.publish(topic: Array(topic.utf8), payload: Array(text.utf8)))
        try client.unsubscribe(topic)
        try client.expectNothing()
    }

    @Test(
        "MQTT-1.5.3-2: U+0000 in any string closes the connection",
        arguments: Transport.all, TextPlace.allCases)
    func nullCharacter(transport: Transport, place: TextPlace) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for text in ["\u{0}", "\u{0}aaaaaaaa", "aaaaaaaa\u{0}", "aaaa\u{0}aaaaaaaa", "é\u{0}"] {
            try expectRefusal(broker, Array(text.utf8), in: place)
        }
    }

    @Test(
        "MQTT-1.5.3-3: U+FEFF is kept wherever it stands, and two texts that differ by it differ",
        arguments: Transport.all)
    func byteOrderMark(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let marked = "\u{FEFF}a\u{FEFF}b\u{FEFF}"
        let client = try broker.subscriber(to: broker.topic("+"), .atMostOnce)
        try client.subscribe(broker.topic("ab/#"), .atMostOnce)
        try client.send(.publish(broker.topic(marked), marked))
        try client.expectBytes(
            RawPacket.publish(
                topic: Array(broker.topic(marked).utf8), payload: Array(marked.utf8)))
        try client.expectNothing()

        // At the very beginning of a topic and of a client identifier.
        let leading = "\u{FEFF}\(broker.prefix)"
        let other = try broker.subscriber("other", to: leading, .atMostOnce)
        try client.subscribe(broker.prefix, .atMostOnce)
        try client.send(.publish(leading, "x"))
        try other.expect(.publish(leading, "x"))
        try client.expectNothing()
        for identifier in [leading, broker.prefix] {
            let named = try broker.open()
            var connect = PacketContent.Connect(clientID: identifier)
            connect.cleanSession = false
            try named.send(.connect(connect))
            try named.expect(.connack(.accepted(sessionPresent: false)))
        }
    }
}
