import Testing

@testable import HermesClientCore

extension Driver {
    /// Delivers texts of ``TestPayload`` in packets of their own and returns what the app gets of
    /// them; the app acknowledges at once.
    @discardableResult
    mutating func deliver(_ texts: String..., qos: UInt8 = 1) -> [String] {
        var arrived: [String] = []
        for text in texts {
            let identifier = UInt16(truncatingIfNeeded: machine.counters.received % 60_000 + 1)
            receive(Packets.publish(Array(text.utf8), qos: qos, identifier: identifier))
            for message in takeAll() {
                arrived.append(String(decoding: message.payload, as: UTF8.self))
                acknowledge(message.number)
            }
            if qos == 2 { receive(Packets.pubrel(identifier)) }
        }
        return arrived
    }

    var lost: [ClosedRange<UInt64>] {
        events.flatMap { event -> [ClosedRange<UInt64>] in
            if case .loss(_, let ranges) = event { ranges } else { [] }
        }
    }
}

extension ClientAction {
    fileprivate var isLoss: Bool {
        if case .event(.loss) = self { true } else { false }
    }
}

@Suite("Duplicates and losses")
struct SequenceTests {
    @Test(
        "a sequence that was seen is acknowledged, counted, and not delivered",
        arguments: [0, 1, 2])
    func duplicate(qos: UInt8) throws {
        var client = try Driver()
        client.connect()
        #expect(client.deliver("a/1", "a/2", "a/1", "b/1", qos: qos) == ["a/1", "a/2", "b/1"])
        #expect(client.machine.counters.duplicates == 1)
        if qos == 1 {
            #expect(client.sent.count { if case .puback = $0 { true } else { false } } == 4)
        }
        client = try client.restarted()
        client.connect(sessionPresent: true)
        #expect(client.deliver("a/2", "b/1", "b/2", qos: qos) == ["b/2"])
    }

    @Test("a copy of a message that the app still has waits for its acknowledgement")
    func copy() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish(.init(text: "a/1"), identifier: 1),
            Packets.publish(.init(text: "a/1"), topic: "other", identifier: 2))
        client.clear()
        let messages = client.takeAll()
        #expect(messages.count == 1)
        #expect(client.sent == [])
        client.acknowledge(messages[0].number)
        #expect(client.sent == [.puback(1), .puback(2)])
    }

    @Test("a hole of 5 s is a loss, told once, also across a kill")
    func loss() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/10", "a/11", "a/14", "a/17")
        client.pass(4_999)
        #expect(client.lost == [])
        client.pass(1)
        #expect(client.lost == [12...13, 15...16])
        #expect(client.machine.counters.losses == 4)
        client.clear()
        client.pass(20_000)
        client = try client.restarted()
        client.connect(sessionPresent: true)
        client.deliver("a/18")
        client.pass(20_000)
        #expect(client.lost == [])
    }

    @Test("a hole that a kill comes between is told after it, though nothing follows, and once")
    func lossAcrossKill() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/4")
        client = try client.restarted()
        client.connect(sessionPresent: true)
        client.pass(5_000)
        #expect(client.lost == [2...3])
        client = try client.restarted()
        client.connect(sessionPresent: true)
        client.pass(20_000)
        #expect(client.lost == [])
        #expect(client.machine.counters.losses == 2)
    }

    @Test(
        "a loss among messages that the app had not acknowledged at a kill is told once",
        arguments: [true, false])
    func lossOfUnacknowledged(hasBaseline: Bool) throws {
        var client = try Driver()
        client.connect()
        if hasBaseline { client.deliver("a/1") }
        func bring(_ client: inout Driver) {
            for (index, text) in ["a/2", "a/5"].enumerated() {
                client.receive(
                    Packets.publish(.init(text: text), identifier: UInt16(100 + index)))
            }
        }
        bring(&client)
        client.pass(5_000)
        #expect(client.lost == [3...4])
        client = try client.restarted()
        client.connect(sessionPresent: true)
        bring(&client)
        #expect(client.takeAll().count == 2)
        client.pass(20_000)
        #expect(client.lost == [])
    }

    @Test(
        "unsubscribing and subscribing again is a new baseline, also across a kill",
        arguments: [0, 1, 2])
    func resubscribed(killAt: Int) throws {
        var client = try Driver.subscribed(to: "t")
        client.deliver("a/1", "a/2")
        client.unsubscribe("t")
        client.answerSubscription()
        if killAt == 1 {
            client = try client.restarted()
            client.connect(sessionPresent: true)
        }
        try client.subscribe("t")
        client.answerSubscription()
        if killAt == 2 {
            client = try client.restarted()
            client.connect(sessionPresent: true)
        }
        client.deliver("a/10", "a/11", "a/13")
        client.pass(20_000)
        #expect(client.lost == [12...12])
        #expect(try client.restarted().machine.stored == client.machine.stored)
    }

    @Test("a subscription that ends leaves the channels of another one alone")
    func otherChannel() throws {
        var client = try Driver.subscribed(to: "t")
        client.deliver("a/1")
        try client.subscribe("u")
        client.answerSubscription()
        client.unsubscribe("u")
        client.answerSubscription()
        client.deliver("a/3")
        client.pass(20_000)
        #expect(client.lost == [2...2])
    }

    @Test("a subscription that brings a part only counts no losses, and tells duplicates")
    func uncounted() throws {
        var client = try Driver()
        client.connect()
        try client.call { machine, moment throws(SubscriptionError) in
            try machine.subscribe(
                Array("$share/g/t".utf8), qos: .atLeastOnce, countsLosses: false, at: moment)
        }
        client.answerSubscription()
        #expect(client.deliver("a/1", "a/5", "a/1", "a/9") == ["a/1", "a/5", "a/9"])
        client.pass(20_000)
        #expect(client.lost == [])
        client = try client.restarted()
        client.connect(sessionPresent: true)
        client.deliver("a/20")
        client.pass(20_000)
        #expect(client.lost == [])
    }

    @Test(
        "topics and filters",
        arguments: [
            ("a/b", "a/b", true), ("a/+", "a/b", true), ("a/#", "a", true), ("#", "a/b", true),
            ("+/b", "a/b", true), ("a/+", "a/b/c", false), ("a", "a/b", false),
            ("a/b/+", "a/b", false), ("+", "$SYS", false), ("#", "$SYS/x", false),
            ("$share/g/a/#", "a/b", true), ("$share/g/a/#", "b", false), ("+/+", "/", true),
        ])
    func matches(filter: String, topic: String, matches: Bool) {
        #expect(TopicMatch.covers(Array(filter.utf8), Array(topic.utf8)) == matches)
    }

    @Test("a loss is told before that is stored, or a kill between would hide it")
    func lossBeforeStore() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/3")
        client.clear()
        client.pass(5_000)
        let told = try #require(client.actions.firstIndex { $0.isLoss })
        let stored = try #require(
            client.actions.firstIndex { if case .store = $0 { true } else { false } })
        #expect(told < stored)
    }

    @Test("a hole that is filled or superseded in time is no loss")
    func filled() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/4", "a/9/5/6/8", "a/3", "a/7", "a/2")
        client.pass(20_000)
        #expect(client.lost == [])
    }

    @Test("what comes after it was told as lost is delivered all the same")
    func late() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/3")
        client.pass(5_000)
        #expect(client.deliver("a/2") == ["a/2"])
    }

    @Test("the first message is the baseline; holes wait for the connection")
    func baseline() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/500", "a/502")
        client.transportClosed()
        client.pass(60_000)
        #expect(client.lost == [])
        if client.machine.openingNumber == nil { client.pass(client.retryDelay ?? 0) }
        while client.machine.openingNumber == nil { client.pass(1_000) }
        client.connect(sessionPresent: true)
        client.pass(1_000)
        client.deliver("a/504")
        client.pass(3_000)
        #expect(client.lost == [])
        #expect(client.deliver("a/501", "a/503") == ["a/501", "a/503"])
        client.pass(10_000)
        #expect(client.lost == [])
    }

    @Test("a hole that a kill left open is told after the next message of its channel")
    func holeAcrossKill() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/3")
        client = try client.restarted()
        client.connect(sessionPresent: true)
        client.deliver("a/4")
        client.pass(5_000)
        #expect(client.lost == [2...2])
    }

    @Test("a window of 1,024: below it a sequence counts as seen, and large holes are whole ranges")
    func window() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1", "a/5000")
        #expect(client.deliver("a/3976") == [])
        #expect(client.deliver("a/3977") == ["a/3977"])
        client.pass(5_000)
        #expect(client.lost == [2...3_976, 3_978...4_999])
        #expect(client.deliver("a/18446744073709551615") == ["a/18446744073709551615"])
        client.pass(5_000)
        #expect(client.lost.last == 5_001...UInt64.max - 1)
        _ = try client.restarted()
    }

    @Test("a window agrees with a set, whatever the order")
    func windowModel() {
        for seed in UInt64(1)...50 {
            var random = SplitMix64(seed: seed)
            var window = ChannelWindow(baseline: 5_000)
            var seen: Set<UInt64> = [5_000]
            for _ in 0..<500 {
                let sequence = UInt64(
                    max(1, Int(window.mark) + random.number(in: -1_500...random.number(in: 1...40)))
                )
                let isBelow = sequence + ChannelWindow.size <= window.mark
                #expect(
                    window.contains(sequence) == (isBelow || seen.contains(sequence)),
                    "\(sequence), seed \(seed)")
                window.insert(sequence)
                seen.insert(sequence)
            }
            let lowest = max(5_000, window.mark - ChannelWindow.size + 1)
            let holes = window.untoldHoles.flatMap { Array($0) }
            #expect(holes == (lowest...window.mark).filter { !seen.contains($0) }, "seed \(seed)")
        }
    }

    @Test(
        "a channel that begins anew is told by its time: none of its messages counts as a repeat",
        arguments: [3, 5_000])
    func restart(mark: UInt64) throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1@10", "a/\(mark)@20")
        client.pass(5_000)
        #expect(client.lost == [2...mark - 1])
        client.clear()
        // The broker has lost its store.
        #expect(client.deliver("a/1@30", "a/2@30") == ["a/1@30", "a/2@30"])
        #expect(client.deliver("a/1@30", "a/2@30") == [])
        #expect(client.machine.counters.duplicates == 2)
        client = try client.restarted()
        client.connect(sessionPresent: true)
        #expect(client.deliver("a/2@30", "a/3@40", "a/5@50") == ["a/3@40", "a/5@50"])
        client.pass(5_000)
        #expect(client.lost == [4...4])
        #expect(client.machine.lossesByChannel.map(\.count) == [mark - 1])
    }

    @Test("a repeat is as old as its first copy, wherever its number lies")
    func oldRepeat() throws {
        var client = try Driver()
        client.connect()
        client.deliver("a/1@10", "a/4999@21", "a/5000@20")
        #expect(client.deliver("a/1@10", "a/4999@21", "a/5000@20") == [])
    }

    @Test("a message of a channel that begins anew is no copy of one that the app still has")
    func restartWhileHeld() throws {
        var client = try Driver()
        client.connect()
        client.receive(
            Packets.publish(.init(text: "a/1@10"), identifier: 1),
            Packets.publish(.init(text: "a/1@20"), identifier: 2))
        #expect(client.takeAll().count == 2)
    }

    @Test("without a sequence the last 1,000 names tell duplicates")
    func names() throws {
        var client = try Driver()
        client.connect()
        #expect(client.deliver("=x", "=y", "=x") == ["=x", "=y"])
        client = try client.restarted()
        client.connect(sessionPresent: true)
        #expect(client.deliver("=x") == [])
        for number in 0..<999 { client.deliver("=\(number)") }
        #expect(client.deliver("=x") == ["=x"])
        #expect(client.machine.stored.recentNames.all.count == 1_000)
    }

    @Test("facts beyond their bounds are none, and such messages are delivered each time")
    func unboundedFacts() throws {
        var client = try Driver()
        client.connect()
        let texts = [
            "=" + String(repeating: "n", count: 129), String(repeating: "c", count: 1_025) + "/1",
            "a/2000" + String(repeating: "/1", count: 1_025), "a/0",
        ]
        for text in texts {
            #expect(client.deliver(text, text) == [text, text])
        }
        #expect(client.machine.stored.channels.count == 0)
        #expect(client.machine.stored.recentNames.all.isEmpty)
    }

    @Test("channels are bounded; the one that was quiet for longest is forgotten")
    func channels() {
        var table = ChannelTable()
        for number in 0..<1_100 {
            table.insert(SequenceNumbers(channel: .init(text: "c\(number)"), sequence: 1))
            table.insert(
                SequenceNumbers(channel: .init(text: "busy"), sequence: UInt64(number) + 1))
        }
        #expect(table.count == ChannelTable.mostChannels)
        #expect(table[.init(text: "busy")]?.mark == 1_100)
        #expect(table[.init(text: "c0")] == nil)
    }
}
