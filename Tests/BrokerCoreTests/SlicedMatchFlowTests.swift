import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Messages whose topics so many filters match that a turn is too short to find them all.
@Suite("Messages that very many filters match")
struct SlicedMatchFlowTests {
    private static let prefix = [String](repeating: "a", count: 12).joined(separator: "/")

    /// A link with a subscriber whose 8,192 filters all match topics below ``prefix``.
    private func makeLink() throws -> (link: ShardLink, subscriber: Handle) {
        let link = ShardLink()
        let subscriber = try link.connect("subscriber")
        try link.subscribeToManyFilters(subscriber)
        return (link, subscriber)
    }

    private func payloads(_ packets: [PacketContent]) -> [String] {
        packets.compactMap {
            if case .publish(let publish) = $0 {
                String(decoding: publish.payload, as: UTF8.self)
            } else {
                nil
            }
        }
    }

    private func burst(_ name: String) throws -> [UInt8] {
        let topic = "\(Self.prefix)/\(name)"
        return try PacketContent.publish("\(topic)/0", "\(name)0").encoded()
            + PacketContent.publish("\(topic)/1", "\(name)1", qos: .atLeastOnce, 1).encoded()
            + PacketContent.publish("\(topic)/2", "\(name)2", qos: .exactlyOnce, 2).encoded()
            + PacketContent.publish("\(topic)/3", "\(name)3").encoded()
    }

    @Test("they arrive once and in order, are counted once, and others are answered between")
    func order() throws {
        let (link, subscriber) = try makeLink()
        let publishers = try ["x", "y", "z"].map { ($0, try link.connect($0)) }
        let quiet = try link.connect("quiet")
        let (packets, publishes) = (
            link.shard.counters.packetsReceived, link.shard.counters.publishesReceived
        )
        for (name, publisher) in publishers { link.receive(publisher, try burst(name)) }
        var turns = 0
        var pings = 0
        while link.shard.hasTurnWaiters {
            link.receive(quiet, try PacketContent.pingreq.encoded())
            link.turnOnce()
            turns += 1
            pings += try link.take(quiet).count
        }
        #expect(turns > 12 && pings == turns, "\(pings) answers in \(turns) turns")
        let received = payloads(try link.take(subscriber))
        #expect(received.count == 12)
        for (name, publisher) in publishers {
            #expect(received.filter { $0.hasPrefix(name) } == (0...3).map { "\(name)\($0)" })
            #expect(try link.take(publisher) == [.puback(1), .pubrec(2)])
        }
        #expect(link.shard.counters.publishesReceived - publishes == 12)
        #expect(link.shard.counters.packetsReceived - packets == 12 + UInt64(turns))
    }

    @Test("a client that unsubscribes between slices gets no message; one that subscribes does")
    func changes() throws {
        let (link, subscriber) = try makeLink()
        let leaving = try link.subscriber(
            "leaving", to: "\(Self.prefix)/#", .atMostOnce, cleanSession: true)
        let coming = try link.connect("coming")
        let publisher = try link.connect("publisher")
        link.receive(publisher, try burst("x"))
        link.turnOnce()
        #expect(link.unreadCount(of: publisher) == (try burst("x")).count, "no message is through")
        let unsubscribe = PacketContent.unsubscribe(7, [Array("\(Self.prefix)/#".utf8)])
        link.receive(leaving, try unsubscribe.encoded())
        link.receive(coming, try PacketContent.subscribe("\(Self.prefix)/#", .atMostOnce).encoded())
        link.turn()
        #expect(payloads(try link.take(leaving)).isEmpty)
        #expect(payloads(try link.take(coming)) == ["x0", "x1", "x2", "x3"])
        #expect(payloads(try link.take(subscriber)) == ["x0", "x1", "x2", "x3"])
    }

    @Test("a publisher that leaves between slices makes way; its will and groups arrive too")
    func others() throws {
        let (link, subscriber) = try makeLink()
        let leaving = try link.connect("leaving") {
            $0.will = PacketContent.Will(topic: "\(Self.prefix)/will", message: Array("will".utf8))
        }
        let publisher = try link.connect("publisher")
        link.receive(leaving, try burst("x"))
        link.turnOnce()
        link.receive(publisher, try burst("y"))
        let (groups, single) = (Answers<[PublishOutcome]>(), Answers<PublishOutcome>())
        let topic = Array("\(Self.prefix)/http".utf8)
        link.shard.publishGroup(
            (1...3).map {
                Publication(topic: topic + [0x30 + $0], payload: [0x30 + $0], qos: .atMostOnce)
            }, reply: groups.reply)
        link.shard.publish(
            Publication(topic: topic, payload: Array("single".utf8), qos: .atMostOnce),
            reply: single.reply)
        link.lose(leaving)
        link.turn()
        let received = payloads(try link.take(subscriber))
        #expect(received.filter { $0.hasPrefix("y") } == ["y0", "y1", "y2", "y3"])
        #expect(received.filter { $0.count == 1 } == ["1", "2", "3"])
        #expect(received.filter { $0 == "will" || $0 == "single" }.sorted() == ["single", "will"])
        #expect(received.count == 9, "\(received)")
        let one = PublishCounts(matched: 1, online: 1)
        #expect(
            groups.values == [.success([.published(one), .published(one), .published(one)])])
        #expect(single.values == [.success(.published(one))])
    }

    // MARK: Shared groups

    private static let groups = 5_000

    private func join(_ link: ShardLink, _ client: Handle, _ groups: Range<Int>) throws {
        for start in stride(from: groups.lowerBound, to: groups.upperBound, by: 1_000) {
            let requests = (start..<min(start + 1_000, groups.upperBound)).map {
                PacketContent.Request("$share/g\($0)/jobs/#", .exactlyOnce)
            }
            try link.send(client, .subscribe(1, requests))
        }
        _ = try link.take(client)
    }

    @Test("members of very many groups get each message once and in order, others are answered")
    func groups() throws {
        let link = ShardLink { $0.maxInFlight = 60_000 }
        let members = try ["a", "b"].map { try link.connect($0) }
        try join(link, members[0], 0..<Self.groups)
        try join(link, members[1], 0..<Self.groups)
        let (publisher, quiet) = (try link.connect("publisher"), try link.connect("quiet"))
        var bytes: [UInt8] = []
        for number in 1...3 as ClosedRange<UInt16> {
            bytes += try PacketContent.publish(
                "jobs/\(number)", "\(number)", qos: .atLeastOnce,
                try #require(PacketIdentifier(number))
            ).encoded()
        }
        link.receive(publisher, bytes)
        var (turns, pings) = (0, 0)
        var received: [[String]] = [[], []]
        while link.shard.hasTurnWaiters {
            link.receive(quiet, try PacketContent.pingreq.encoded())
            link.turnOnce()
            turns += 1
            pings += try link.take(quiet).count
            for index in 0...1 { received[index] += payloads(try link.take(members[index])) }
        }
        link.turn()
        for index in 0...1 { received[index] += payloads(try link.take(members[index])) }
        #expect(turns >= 3 && pings == turns, "\(pings) answers in \(turns) turns")
        #expect(received.flatMap(\.self).count == 3 * Self.groups)
        // Members take turns.
        #expect(received.map(\.count) == [2 * Self.groups, Self.groups])
        for index in 0...1 { #expect(received[index] == received[index].sorted()) }
        #expect(try link.take(publisher) == [.puback(1), .puback(2), .puback(3)])
    }

    @Test("a member that leaves or closes between slices is replaced; one that comes is in time")
    func changingMembers() throws {
        let link = ShardLink { $0.maxInFlight = 60_000 }
        let (leaving, closing) = (try link.connect("leaving"), try link.connect("closing"))
        let (publisher, coming) = (try link.connect("publisher"), try link.connect("coming"))
        try join(link, leaving, 0..<Self.groups)
        try join(link, closing, 0..<Self.groups)
        link.receive(
            publisher, try PacketContent.publish("jobs/x", "x", qos: .atLeastOnce, 1).encoded())
        link.turnOnce()
        #expect(link.unreadCount(of: publisher) > 0, "the message is through at once")
        let requests = (0..<100).map {
            PacketContent.Request("$share/g\($0)/jobs/#", .exactlyOnce)
        }
        link.receive(coming, try PacketContent.subscribe(1, requests).encoded())
        link.receive(leaving, try PacketContent.unsubscribe(7, requests.map(\.filter)).encoded())
        link.lose(closing)
        link.turn()
        let got = try [leaving, coming].map { payloads(try link.take($0)).count }
        // Nobody else is left in the first groups, and in the others only the one that stays.
        #expect(got == [Self.groups - 100, 100], "\(got)")
        #expect(try link.take(publisher) == [.puback(1)])
    }

    @Test("who takes a place that was chosen in a slice gets nothing that the rules deny it")
    func newMemberAtAPlace() throws {
        let access = try rules("deny everyone client bob subscribe jobs/x\nallow everyone both #")
        let link = ShardLink({ $0.maxInFlight = 60_000 }, access: access)
        let (leaving, staying) = (try link.connect("leaving"), try link.connect("staying"))
        let (publisher, bob) = (try link.connect("publisher"), try link.connect("bob"))
        try join(link, leaving, 0..<1)
        try join(link, staying, 0..<Self.groups)
        link.receive(
            publisher, try PacketContent.publish("jobs/x", "x", qos: .atLeastOnce, 1).encoded())
        link.turnOnce()
        #expect(link.unreadCount(of: publisher) > 0, "the message is through at once")
        // Bob takes the place of the member that was chosen for the first group.
        let request = PacketContent.Request("$share/g0/jobs/#", .exactlyOnce)
        link.receive(leaving, try PacketContent.unsubscribe(7, [request.filter]).encoded())
        link.receive(bob, try PacketContent.subscribe(1, [request]).encoded())
        link.turn()
        #expect(payloads(try link.take(bob)).isEmpty)
        #expect(payloads(try link.take(staying)).count == Self.groups)
        #expect(try link.take(publisher) == [.puback(1)])
    }

    @Test("groups of full members take turns in losing, though they were chosen in slices")
    func fullMembers() throws {
        let link = ShardLink {
            $0.maxInFlight = 1
            $0.queueMessages = 1
        }
        let publisher = try link.connect("publisher")
        for name in ["one", "two"] {
            let member = try link.connect(name, cleanSession: false)
            try join(link, member, 0..<1_200)
            link.lose(member)
        }
        for number in 1...4 as ClosedRange<UInt16> {
            try link.send(
                publisher,
                .publish(
                    "jobs/\(number)", "\(number)", qos: .atLeastOnce,
                    try #require(PacketIdentifier(number))))
        }
        let lost = ["one", "two"].map { name in
            link.shard.client(name) { _ in "" }?.summary.dropped ?? 0
        }
        // Each of the two holds one of 4,800 copies; the first two went where room was.
        #expect(lost.reduce(0, +) == 4_798)
        #expect(lost.allSatisfy { (1_800...3_000).contains($0) }, "\(lost)")
        let kept = try ["one", "two"].map { try link.takeAll(try link.beginConnect($0)) }
        #expect(kept == [["4"], ["4"]], "both members hold the newest")
    }

    @Test("QoS 0 reaches each of very many groups once, whatever changes between slices")
    func atMostOnce() throws {
        let link = ShardLink(access: try rules("allow everyone both #"))
        let members = try ["a", "b"].map { try link.connect($0) }
        try join(link, members[0], 0..<Self.groups)
        try join(link, members[1], 0..<Self.groups)
        let publisher = try link.connect("publisher")
        let sent = link.shard.counters.publishesSent
        link.receive(publisher, try PacketContent.publish("jobs/x", "x").encoded())
        link.turnOnce()
        #expect(link.unreadCount(of: publisher) > 0, "the message is through at once")
        var got = try members.map { payloads(try link.take($0)).count }
        let first = got.reduce(0, +)
        #expect(first > 0 && first < Self.groups, "\(first) copies in the first turn")
        // The choice begins again under new rules, and one of the members goes.
        try link.use("allow everyone both jobs/#")
        link.turnOnce()
        for index in 0...1 { got[index] += payloads(try link.take(members[index])).count }
        link.lose(members[1])
        link.turn()
        got[0] += payloads(try link.take(members[0])).count
        #expect(got.reduce(0, +) == Self.groups, "\(got)")
        #expect(link.shard.counters.publishesSent - sent == UInt64(Self.groups))
        try link.send(publisher, .publish("jobs/x", "y"))
        #expect(payloads(try link.take(members[0])) == .init(repeating: "y", count: Self.groups))
    }
}
