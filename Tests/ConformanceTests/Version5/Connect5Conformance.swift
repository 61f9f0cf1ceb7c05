import HermesTesting
import Testing

@Suite("MQTT 5.0, 3.1: CONNECT")
struct Connect5Conformance {
    private func refuse(
        _ broker: BrokerUnderTest, _ packet: Packet5, _ code: UInt8,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let client = try broker.open()
        try client.send5(packet)
        let came = try client.nextFrame()
        #expect(
            try came.map { try Packet5(received: $0).header } == [0, code] && came?[0] == 0x20,
            "\(packet) got \(WireBytes(came ?? []))", sourceLocation: location)
        try client.expectClosed(location)
    }

    @Test(
        "MQTT5-3.1.0-1, MQTT5-3.14.0-1, trap 61: another packet first is closed without a word",
        arguments: Transport.all)
    func connectComesFirst(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets: [Packet5] = [
            .publish("a", ""), .puback(1), .subscribe(1, ["a": 0]), .pingreq, .disconnect(),
            .auth(0x19, [.field(0x15, "m")]), .connack(),
        ]
        for packet in packets {
            let client = try broker.open()
            try client.send5(packet)
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT5-3.1.0-2, MQTT5-3.2.0-2: a second CONNECT is a protocol error and gets no second CONNACK",
        arguments: Transport.all)
    func secondConnect(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client")
        try client.send5(broker.connectPacket5("client"))
        try client.expectEnd5(0x82)
        let other = try broker.connect5("client")
        try other.send(broker.connectPacket("client"))
        try other.expectEnd5(0x82)
    }

    @Test(
        "MQTT5-3.1.2-1, MQTT5-3.1.2-2: another protocol name or version closes, with 0x84 at most",
        arguments: Transport.all)
    func otherProtocols(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let payload = RawPacket.field(broker.identifier("x"))
        let packets: [Packet5] = [
            .connect(name: "MQTX", flags: 2, payload: payload),
            .connect(name: "mqtt", flags: 2, payload: payload),
            .connect(name: "MQIsdp", flags: 2, payload: payload),
            .connect(level: 6, flags: 2, payload: payload),
            .connect(level: 255, flags: 2, payload: payload),
            .connect(level: 0, flags: 2, payload: payload),
        ]
        for packet in packets {
            let client = try broker.open()
            try client.send5(packet)
            // A broker cannot know which form of CONNACK such a client reads.
            let frame = try client.nextFrame()
            let isRefusal =
                frame == nil || frame == [0x20, 0x02, 0x00, 0x01]
                || frame?.starts(with: [0x20]) == true && frame?[3] == 0x84
            #expect(isRefusal, "\(packet) got \(WireBytes(frame ?? []))")
            try client.expectClosed()
        }
    }

    @Test(
        "MQTT5-3.1.2-3, MQTT5-3.1.2-11, MQTT5-3.1.2-12, MQTT5-3.1.2-13, MQTT5-3.1.4-1, trap 62: wrong connect flags are malformed",
        arguments: Transport.all)
    func connectFlags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let payload = RawPacket.field(broker.identifier("x"))
        for flags in [UInt8(0x01), 0x03, 0x0A, 0x12, 0x1A, 0x22, 0x2A] {
            try refuse(broker, .connect(flags: flags, payload: payload), 0x81)
        }
        let will = [0x00] + RawPacket.field("t") + RawPacket.field("m")
        try refuse(broker, .connect(flags: 0x1E, payload: payload + will), 0x81)
        try refuse(broker, .connect(flags: 0x3E, payload: payload + will), 0x81)
    }

    @Test(
        "MQTT5-3.1.2-9, MQTT5-3.1.2-16, MQTT5-3.1.2-17, MQTT5-3.1.2-18, MQTT5-3.1.2-19, MQTT5-3.1.3-3, MQTT5-3.2.2-7: a payload that is not what the flags say is malformed",
        arguments: Transport.all)
    func payloadAndFlags(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let name = RawPacket.field(broker.identifier("x"))
        let field = RawPacket.field("f")
        let rows: [(UInt8, [UInt8])] = [
            (0x02, []), (0x02, [0x00]), (0x02, [0x00, 0x05, 0x61]),
            // Fields without their flag.
            (0x02, name + field), (0x82, name + field + field), (0x42, name + field + field),
            (0x06, name + [0x00] + field + field + field),
            // Flags without their field.
            (0x82, name), (0x42, name), (0xC2, name + field), (0x06, name), (0x06, name + [0x00]),
            (0x06, name + [0x00] + field), (0x86, name + [0x00] + field + field),
        ]
        for (flags, payload) in rows {
            try refuse(broker, .connect(flags: flags, payload: payload), 0x81)
        }
    }

    @Test(
        "MQTT5-3.1.3-1, MQTT5-3.1.2-17, MQTT5-3.1.2-19: the fields come in their order, and a password may come without a user name",
        arguments: Transport.all)
    func payloadOrder(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("will")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.open()
        try client.send5(
            .connect(
                broker.identifier("full"), [.receiveMaximum(9), .user("a", "b")],
                will: Packet5.Will(topic: topic, properties: [.contentType("c")]),
                userName: "user", password: "word"))
        try client.accept5()
        try client.finish()
        try watcher.expect5(.publish(topic, "gone", [.contentType("c")]))
        let other = try broker.open()
        try other.send5(.connect(broker.identifier("word"), password: "word"))
        try other.accept5()
        try other.expectNothing()
    }

    @Test(
        "MQTT5-3.1.3-4, MQTT5-3.1.3-11, MQTT5-3.1.3-12: ill-formed UTF-8 in CONNECT is malformed",
        arguments: Transport.all)
    func illFormedText(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let name = RawPacket.field(broker.identifier("x"))
        for text in [[0xFF], [0x61, 0x00], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            let bad = RawPacket.field(text)
            try refuse(broker, .connect(flags: 0x02, payload: bad), 0x81)
            try refuse(broker, .connect(flags: 0x82, payload: name + bad), 0x81)
            try refuse(
                broker,
                .connect(flags: 0x06, payload: name + [0x00] + bad + RawPacket.field("m")), 0x81)
            try refuse(
                broker,
                .connect(
                    flags: 0x02, [Property5(0x26, bad + RawPacket.field("v"))], payload: name),
                0x81)
        }
    }

    @Test(
        "MQTT5-3.1.4-1, MQTT5-3.2.2-6, MQTT5-3.2.2-8, trap 10: properties that CONNECT and its will may not have are refused with their code, again and again",
        arguments: Transport.all)
    func properties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let name = RawPacket.field(broker.identifier("x"))
        let rows: [(UInt8, [Property5])] = [
            // Not of CONNECT, unknown, or cut short.
            (0x81, [.messageExpiry(1)]), (0x81, [.alias(1)]), (0x81, [.subscription(1)]),
            (0x81, [.willDelay(1)]), (0x81, [.byte(0x24, 1)]), (0x81, [.two(0x13, 1)]),
            (0x81, [.byte(0x7E, 1)]), (0x81, [Property5(0x11, [0, 0])]),
            // Twice.
            (0x82, [.sessionExpiry(1), .sessionExpiry(1)]),
            (0x82, [.receiveMaximum(1), .receiveMaximum(1)]),
            (0x82, [.packetSize(100), .packetSize(100)]),
            (0x82, [.aliasMaximum(1), .aliasMaximum(1)]),
            (0x82, [.requestProblems(1), .requestProblems(1)]),
            (0x82, [.requestResponse(1), .requestResponse(1)]),
            // Values.
            (0x82, [.receiveMaximum(0)]), (0x82, [.packetSize(0)]), (0x82, [.requestProblems(2)]),
            (0x82, [.requestResponse(2)]), (0x82, [.field(0x16, "data without a method")]),
        ]
        for (code, properties) in rows {
            try refuse(broker, .connect(flags: 0x02, properties, payload: name), code)
        }
        let ofWill: [(UInt8, [Property5])] = [
            (0x81, [.sessionExpiry(1)]), (0x81, [.alias(1)]), (0x81, [.subscription(1)]),
            (0x82, [.willDelay(1), .willDelay(1)]), (0x82, [.messageExpiry(1), .messageExpiry(1)]),
            (0x82, [.payloadFormat(2)]), (0x82, [.payloadFormat(1), .payloadFormat(1)]),
            (0x82, [.contentType("a"), .contentType("a")]),
        ]
        for (code, properties) in ofWill {
            for _ in 0..<3 {
                try refuse(
                    broker,
                    .connect(
                        broker.identifier("x"),
                        will: Packet5.Will(topic: "t", properties: properties)), code)
            }
        }
        let watcher = try broker.connect5("x")
        try watcher.expectNothing()
    }

    @Test(
        "Trap 11: very many User Properties are answered, and nobody else waits",
        arguments: Transport.all)
    func manyUserProperties(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let other = try broker.connect5("other")
        let client = try broker.open()
        let users = [Property5](repeating: .user("n", "v"), count: 40_000)
        try client.send5(broker.connectPacket5("client", users))
        let answer = try client.next5()
        #expect(answer?.type == 2, "\(answer.map(String.init(describing:)) ?? "nothing")")
        try other.publish5(broker.topic("a"), "x", qos: 1)
        try other.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-4, MQTT5-3.1.4-4, MQTT5-3.2.2-2: Clean Start 1 throws the session away",
        arguments: Transport.all)
    func cleanStart(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        let first = try broker.subscriber5("client", to: topic, 1, expiry: 100)
        try first.finish()
        try publisher.publish5(topic, "waiting", qos: 1)
        let second = try broker.connect5("client", expiry: 100)
        try publisher.publish5(topic, "after", qos: 1)
        try second.expectNothing()
        // A new session has begun: the next resume finds it, without the old subscription.
        try second.finish()
        let third = try broker.connect5(
            "client", cleanStart: false, expiry: 100, sessionPresent: true)
        try publisher.publish5(topic, "after", qos: 1)
        try third.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-5, MQTT5-3.1.2-6, MQTT5-3.1.2-23, MQTT5-3.1.3-2, MQTT5-3.2.2-3, MQTT5-4.5.0-1: Clean Start 0 goes on with the session of that client identifier, or makes one",
        arguments: Transport.all)
    func resume(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect5("publisher")
        let first = try broker.connect5("client", cleanStart: false, expiry: 100)
        try first.subscribe5(topic, 1)
        try first.finish()
        try publisher.publish5(topic, "waiting", qos: 1)
        let other = try broker.connect5("other", cleanStart: false, expiry: 100)
        try other.expectNothing()
        let second = try broker.connect5(
            "client", cleanStart: false, expiry: 100, sessionPresent: true)
        try second.expect5(.publish(topic, "waiting", qos: 1, 1))
        try second.send5(.puback(1))
        try publisher.publish5(topic, "live", qos: 1)
        try second.expect5(.publish(topic, "live", qos: 1, 2))
        try second.expectNothing()
    }

    @Test(
        "MQTT5-3.1.3-5: client identifiers of 1 to 23 letters and digits are accepted",
        arguments: Transport.all)
    func plainIdentifiers(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        // One character tells the transports apart, which share a broker.
        let short = ["memory": "m", "tcp": "t", "webSocket": "W"]["\(transport)"] ?? "x"
        for name in [short, "0123456789abcdefghij\(short)YZ", "ABCDEFGHIJKLMNOPQRSTU\(short)V"] {
            #expect(name.utf8.count <= 23)
            let client = try broker.open()
            try client.send5(.connect(name))
            try client.accept5()
            try client.expectNothing()
        }
    }

    @Test(
        "MQTT5-3.1.3-6, MQTT5-3.1.3-7, MQTT5-3.2.2-16, trap 62: an empty client identifier gets a unique one, which names the session",
        arguments: Transport.all)
    func assignedIdentifier(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        var names: Set<String> = []
        for isClean in [true, false, true, false] {
            let client = try broker.open()
            try client.send5(.connect("", cleanStart: isClean, [.sessionExpiry(100)]))
            try client.accept5()
            let name = try #require(client.connack?.property(0x12)).text
            #expect(!name.isEmpty && names.insert(name).inserted)
            try client.subscribe5(topic, 1)
            try client.finish()
            let again = try broker.open()
            try again.send5(.connect(name, cleanStart: false))
            try again.accept5(sessionPresent: true)
            #expect(again.connack?.property(0x12) == nil)
            try again.publish5(topic, "own", qos: 1)
            try again.expect5(.publish(topic, "own", qos: 1, 1))
            try again.disconnect5()
        }
        let named = try broker.connect5("named")
        #expect(named.connack?.property(0x12) == nil)
    }

    @Test(
        "MQTT5-3.1.3-8, trap 62: a client identifier that is too long is refused with 0x85",
        arguments: Transport.all)
    func refusedIdentifier(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.open()
        try client.send5(.connect(String(repeating: "i", count: 1_025)))
        try client.expectRefused5(0x85)
    }

    @Test(
        "MQTT5-3.1.4-2, MQTT5-3.2.2-6, MQTT5-3.2.2-7: a CONNECT that is not authorised is refused, without Session Present",
        arguments: Transport.all)
    func notAuthorized(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let owner = try broker.connect5("client", expiry: 100, userName: "alice")
        let other = try broker.open()
        try other.send5(
            broker.connectPacket5("client", cleanStart: false, expiry: 100, userName: "mallory"))
        try other.expectRefused5(0x87)
        try owner.expectNothing()
    }

    @Test(
        "MQTT5-3.1.4-3, MQTT5-3.1.4-5, trap 20: a client that connects again takes over, and the old connection gets DISCONNECT 0x8E",
        arguments: Transport.all, [false, true])
    func takeOver(transport: Transport, isClean: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let old = try broker.subscriber5("client", to: topic, 1, expiry: 100)
        let new = try broker.connect5(
            "client", cleanStart: isClean, expiry: 100, sessionPresent: !isClean)
        try old.expectEnd5(0x8E)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1)
        if !isClean { try new.expect5(.publish(topic, "x", qos: 1, 1)) }
        try new.expectNothing()
    }

    @Test(
        "MQTT5-3.1.4-3: a client of 3.1.1 takes over from one of 5.0, and the other way round",
        arguments: Transport.all)
    func takeOverBetweenVersions(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let first = try broker.subscriber5("client", to: topic, 1, expiry: 100)
        let second = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try first.expectEnd5(0x8E)
        let publisher = try broker.connect5("publisher")
        try publisher.publish5(topic, "x", qos: 1, [.user("n", "v")])
        try second.expect(.publish(topic, "x", qos: .atLeastOnce, 1))
        let third = try broker.connect5(
            "client", cleanStart: false, expiry: 100, sessionPresent: true)
        try second.expectClosed()
        try third.expect5(
            .publish(topic, "x", qos: 1, 1, isDuplicate: true, [.user("n", "v")]))
        try third.expectNothing()
    }

    @Test(
        "MQTT5-3.1.4-6: nothing that follows a refused CONNECT is processed",
        arguments: Transport.all)
    func nothingBehindARefusal(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let watcher = try broker.subscriber5("watcher", to: topic, 0)
        let client = try broker.open()
        try client.send5(
            .connect(String(repeating: "i", count: 1_025)), .publish(topic, "x"), .pingreq)
        try client.expectRefused5(0x85)
        try watcher.expectNothing()
    }

    @Test(
        "MQTT5-3.1.2-22, MQTT5-3.2.2-22, trap 66: silence of 1.5 keep alives ends the connection with 0x8D",
        arguments: Transport.all)
    func keepAlive(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let client = try broker.connect5("client", keepAlive: 1)
        #expect(client.connack?.property(0x13) == nil)
        try client.pass(milliseconds: 1_200)
        try client.send5(.pingreq)
        try client.expect5(.pingresp)
        let start = TCPWire.now
        let elapsed =
            transport == .memory ? try client.passUntilClosed(within: 3_000) : nil
        try client.expectEnd5(0x8D)
        // On a busy machine only the lower bound means anything.
        #expect(elapsed.map { (1_500...1_750).contains($0) } ?? (TCPWire.now - start >= 1_450))
    }
}
