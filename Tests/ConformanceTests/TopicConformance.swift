import HermesTesting
import MQTTCodec
import Testing

@Suite("4.7 Topic names and topic filters")
struct TopicConformance {
    /// Subscribes to each filter alone and checks which topics match.
    private func expectMatches(
        _ transport: Transport, _ table: [(filter: String, matches: [String], others: [String])],
        in place: (BrokerUnderTest, String) -> String = { $0.topic($1) },
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        for (filter, matches, others) in table {
            let client = try broker.connect("client")
            try client.subscribe(place(broker, filter), .atMostOnce, location)
            for topic in others + matches + others {
                try publisher.send(.publish(place(broker, topic), topic))
            }
            // `#` also brings publications of other tests.
            let mine = try client.takeAll().filter { packet in
                guard case .publish(let publish) = packet else { return true }
                return String(decoding: publish.topic, as: UTF8.self).contains(broker.prefix)
            }
            #expect(
                mine == matches.map { .publish(place(broker, $0), $0) }, "filter \(filter)",
                sourceLocation: location)
        }
    }

    @Test(
        "MQTT-4.7.1-1: wildcards stand for levels in filters, and are no topic names",
        arguments: Transport.all)
    func wildcardsAreForFilters(transport: Transport) throws {
        try expectMatches(
            transport,
            [
                ("a/+", ["a/b", "a/ "], ["a", "a/b/c", "b/a"]),
                ("a/#", ["a", "a/b", "a/b/c"], ["b", "ab"]),
            ])
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for topic in ["a/+", "a/#", "+", "#"] {
            let client = try broker.connect("client")
            try client.send(bytes: RawPacket.publish(topic: Array(broker.topic(topic).utf8)))
            try client.expectClosed()
            let will = try broker.open()
            try will.send(
                bytes: RawPacket.connect(
                    flags: 0x06, payload: RawPacket.field("x"),
                    RawPacket.field(broker.topic(topic)), RawPacket.field("m")))
            try will.expectClosed()
        }
    }

    @Test(
        "MQTT-4.7.1-2: # stands for the parent and any number of levels", arguments: Transport.all)
    func multiLevelWildcard(transport: Transport) throws {
        try expectMatches(
            transport,
            [
                ("#", ["", "a", "a/b", "/", "//", "a/"], []),
                ("a/#", ["a", "a/", "a/b", "a/b/c", "a//"], ["b", "ab", "ab/c", "/a"]),
                ("a/b/#", ["a/b", "a/b/", "a/b/c/d"], ["a", "a/", "a/bc", "b/a/b"]),
                ("/#", ["", "/", "/a"], ["a", "a/"]),
                ("a//#", ["a/", "a//", "a//b"], ["a", "a/b"]),
            ])
    }

    @Test(
        "MQTT-4.7.1-2: a # that is not the whole last level closes the connection",
        arguments: Transport.all,
        ["a#", "#a", "a/#/b", "#/a", "##", "a/##", "#/", "a/b#", "/#/", "+#", "#+", "a/#b"])
    func misplacedMultiLevelWildcard(transport: Transport, filter: String) throws {
        try expectRefusal(transport, filter)
    }

    @Test("MQTT-4.7.1-3: + stands for exactly one level, anywhere", arguments: Transport.all)
    func singleLevelWildcard(transport: Transport) throws {
        try expectMatches(
            transport,
            [
                ("+", ["a", "", "abc"], ["a/", "/", "a/b"]),
                ("+/+", ["a/b", "/", "a/", "/a"], ["a", "a/b/c", ""]),
                ("a/+", ["a/b", "a/"], ["a", "a/b/", "a//"]),
                ("+/b", ["a/b", "/b"], ["b", "a/b/", "a/a/b"]),
                ("a/+/c", ["a/b/c", "a//c"], ["a/c", "a/b/b/c", "a/b/c/"]),
                ("+/b/+", ["a/b/c", "/b/"], ["a/b", "b/c"]),
                ("+/#", ["", "a", "a/b", "/", "a/b/c"], []),
                ("a/+/#", ["a/b", "a/", "a/b/c"], ["a", "b/b"]),
            ])
    }

    @Test(
        "MQTT-4.7.1-3: a + that is not a whole level closes the connection",
        arguments: Transport.all,
        ["a+", "+a", "++", "a/+b", "a/b+", "a+/b", "+a/b", "a/++/b", "/+a", "a+b"])
    func misplacedSingleLevelWildcard(transport: Transport, filter: String) throws {
        try expectRefusal(transport, filter)
    }

    @Test(
        "MQTT-4.7.2-1: a filter that begins with a wildcard matches no topic that begins with $",
        arguments: Transport.all, ["#", "+/a", "+/#", "+/+", "+/+/#"])
    func dollarTopics(transport: Transport, filter: String) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topics = ["$\(broker.prefix)/a", "$\(broker.prefix)/a/b"]
        let publisher = try broker.connect("publisher")
        try publisher.publish(topics[0], "retained", retain: true)
        let client = try broker.subscriber("client", to: filter, .atLeastOnce)
        let named = try broker.subscriber("named", to: "$\(broker.prefix)/#", .atMostOnce)
        try named.expect(.publish(topics[0], "retained", retain: true))
        // Without and with a cached match.
        for _ in 0..<2 {
            for topic in topics { try publisher.publish(topic, "x") }
            try named.expect(.publish(topics[0], "x"), .publish(topics[1], "x"))
            try publisher.publish(broker.topic("a"), "ordinary")
            let received = try client.takeAll()
            for packet in received {
                guard case .publish(let publish) = packet else { continue }
                #expect(publish.topic.first != UInt8(ascii: "$"))
            }
            #expect(received.contains(.publish(broker.topic("a"), "ordinary")))
        }
        try publisher.publish(topics[0], "", retain: true)
    }

    @Test(
        "MQTT-4.7.2-1: a $ that is not the first character is ordinary", arguments: Transport.all)
    func dollarElsewhere(transport: Transport) throws {
        try expectMatches(
            transport,
            [
                ("#", ["$a", "a/$b", "$"], []), ("+", ["$a", "a$"], ["$a/b"]),
                ("a/+", ["a/$b"], []), ("a/#", ["a/$b/c"], []),
            ])
        // A filter that names the first level, followed by wildcards.
        try expectMatches(
            transport,
            [("+", ["a", "$b"], ["a/b"]), ("#", ["", "a/b"], []), ("a/+", ["a/b"], ["a"])],
            in: { "$\($0.prefix)/\($1)" })
    }

    @Test("MQTT-4.7.3-1: empty names and filters close the connection", arguments: Transport.all)
    func emptyNames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let packets: [[UInt8]] = [
            RawPacket.publish(topic: []), RawPacket.publish(topic: [], payload: [0x61]),
            RawPacket.publish(firstByte: 0x32, topic: [], identifier: 1),
            RawPacket.publish(firstByte: 0x35, topic: [], identifier: 1),
            RawPacket.subscribe(filter: []), RawPacket.unsubscribe(filter: []),
            RawPacket.packet(0x82, [0, 1] + RawPacket.field("a") + [0] + [0, 0, 0]),
            RawPacket.packet(0xA2, [0, 1] + RawPacket.field("a") + [0, 0]),
        ]
        for packet in packets {
            let client = try broker.connect("client")
            try client.send(bytes: packet)
            try client.expectClosed()
        }
        // One character is enough, even a separator.
        try expectMatches(transport, [("/", ["/"], ["", "//"])])
        try expectMatches(transport, [("x", ["x"], [])], in: { $0.prefix + $1 })
    }

    @Test(
        "MQTT-4.7.3-2: U+0000 in names and filters closes the connection", arguments: Transport.all)
    func nullCharacter(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        for text in [
            "\u{0}", "a\u{0}", "aaaaaaaaaaaa/\u{0}", "\u{0}/#", "+/\u{0}", "aaaaaaa\u{0}aaaaaaaa",
        ] {
            let packets = [
                RawPacket.publish(topic: Array(text.utf8)),
                RawPacket.subscribe(filter: Array(text.utf8)),
                RawPacket.unsubscribe(filter: Array(text.utf8)),
            ]
            for packet in packets {
                let client = try broker.connect("client")
                try client.send(bytes: packet)
                try client.expectClosed()
            }
        }
    }

    @Test(
        "MQTT-4.7.3-3: names and filters of 65,535 bytes are served", arguments: Transport.all)
    func longestNames(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let longest = broker.topic(
            String(repeating: "x", count: 65_535 - broker.prefix.utf8.count - 1))
        #expect(longest.utf8.count == 65_535)
        let publisher = try broker.connect("publisher")
        let client = try broker.subscriber("client", to: longest, .exactlyOnce, cleanSession: false)
        let wild = try broker.subscriber("wild", to: broker.topic("+"), .atMostOnce)
        try publisher.publish(longest, "1", qos: .exactlyOnce, retain: true)
        try publisher.publish(String(longest.dropLast()), "shorter")
        try publisher.publish(String(longest.dropLast()) + "y", "other")
        try client.expect(.publish(longest, "1", qos: .exactlyOnce, 1))
        try client.expectNothing()
        try wild.expect(
            .publish(longest, "1"), .publish(String(longest.dropLast()), "shorter"),
            .publish(String(longest.dropLast()) + "y", "other"))
        let late = try broker.subscriber("late", to: longest, .atMostOnce)
        try late.expect(.publish(longest, "1", retain: true))
        try client.unsubscribe(longest)
        try publisher.publish(longest, "2", qos: .exactlyOnce)
        try client.expectNothing()
        try publisher.publish(longest, "", retain: true)
        // As will topic.
        let willing = try broker.open()
        try willing.send(
            broker.connectPacket(
                "willing", will: PacketContent.Will(topic: longest, message: [0x33])))
        try willing.expect(.connack(.accepted(sessionPresent: false)))
        _ = try late.takeAll()
        try willing.finish()
        try late.expect(.publish(longest, "3"))
    }

    @Test(
        "MQTT-4.7.3-4: characters are compared as they are: no case, no normal form, no trimming",
        arguments: Transport.all)
    func noNormalisation(transport: Transport) throws {
        let names = [
            "a", "A", "\u{E9}", "e\u{301}", "\u{C5}", "A\u{30A}", "\u{212B}", "a ", " a", "a/",
            "/a",
            "a//b", "a/b", "%61", "\u{FB01}", "fi", "\u{FEFF}a", "\u{200B}a", "\u{DF}", "ss", "SS",
            "a\\b", "..", ".", "a/../b", "a/./b", "\u{1}", "\u{FFFE}",
        ]
        try expectMatches(
            transport,
            names.map { name in (name, [name], names.filter { Array($0.utf8) != Array(name.utf8) })
            })
    }

    private func expectRefusal(
        _ transport: Transport, _ filter: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let good = RawPacket.field(broker.topic("good"))
        let bad = RawPacket.field(filter)
        let packets: [[UInt8]] = [
            RawPacket.subscribe(filter: Array(filter.utf8)),
            RawPacket.packet(0x82, [0, 1] + good + [0] + bad + [0]),
            RawPacket.unsubscribe(filter: Array(filter.utf8)),
            RawPacket.packet(0xA2, [0, 1] + good + bad),
        ]
        for packet in packets {
            let client = try broker.connect("client")
            try client.send(bytes: packet)
            try client.expectClosed(location)
        }
    }
}
