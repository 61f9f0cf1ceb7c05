import BrokerTesting
import FoundationEssentials
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("$SYS topics")
struct SystemTopicsTests {
    // MARK: Subscribing

    @Test("a new subscription gets every documented topic once, RETAIN 1 and QoS 0, behind SUBACK")
    func everyTopic() throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/broker/#", .exactlyOnce))
        let packets = try link.take(watcher)
        #expect(packets.first == .suback(1, [2]))
        let publishes = publishes(in: packets)
        #expect(publishes.count == packets.count - 1)
        #expect(publishes.allSatisfy { $0.retain && $0.delivery == .atMostOnce })
        #expect(Set(publishes.map { text($0.topic) }) == Set(try documentedTopics()))
        #expect(Set(publishes.map(\.topic)).count == publishes.count)
    }

    @Test("later only changed values follow, RETAIN 0, once per interval")
    func changes() throws {
        let link = ShardLink(systemTopicInterval: .seconds(20))
        link.shard.outside.version = "1.2.3"
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/broker/+", .atMostOnce))
        #expect(
            try values(link, watcher) == [
                "$SYS/broker/version": "hermes version 1.2.3", "$SYS/broker/uptime": "0 seconds",
            ])
        link.advance(milliseconds: 19_999)
        #expect(try link.take(watcher).isEmpty)
        link.advance(milliseconds: 1)
        #expect(
            try link.take(watcher) == [.publish("$SYS/broker/uptime", "20 seconds")],
            "the version stays as it was")
        link.advance(milliseconds: 20_000)
        #expect(try link.take(watcher) == [.publish("$SYS/broker/uptime", "40 seconds")])
    }

    @Test("very many groups get each changed value once, and others are answered meanwhile")
    func manyGroups() throws {
        let link = ShardLink()
        let (member, quiet) = (try link.connect("member"), try link.connect("quiet"))
        let groups = 6_000
        for start in stride(from: 0, to: groups, by: 1_000) {
            let requests = (start..<start + 1_000).map {
                PacketContent.Request("$share/g\($0)/$SYS/broker/uptime", .atMostOnce)
            }
            try link.send(member, .subscribe(1, requests))
        }
        _ = try link.take(member)
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 10_000),
            wallClockMs: link.shard.wallClockMs + 10_000)
        var (turns, pings, got) = (0, 0, 0)
        repeat {
            link.receive(quiet, try PacketContent.pingreq.encoded())
            link.turnOnce()
            turns += 1
            pings += try link.take(quiet).count
            got += publishes(in: try link.take(member)).count
        } while link.shard.hasTurnWaiters
        #expect(turns > 2 && pings == turns, "\(pings) answers in \(turns) turns")
        #expect(got == groups)
        link.advance(milliseconds: 10_000)
        #expect(publishes(in: try link.take(member)).count == groups, "the interval goes on")
    }

    @Test("who subscribes while topics are being published gets the next values")
    func subscribedMeanwhile() {
        var topics = SystemTopics(
            interval: .seconds(10), now: MonotonicTime(milliseconds: 0), wallClockMs: 0)
        func subscribe(_ filter: String, at milliseconds: UInt64) {
            _ = Array(filter.utf8).withUnsafeBytes {
                topics.subscribe($0, at: MonotonicTime(milliseconds: milliseconds))
            }
        }
        subscribe("$SYS/#", at: 0)
        topics.begin([(Array("$SYS/a".utf8), nil), (Array("$SYS/b".utf8), nil)], hasShared: false)
        topics.published(at: MonotonicTime(milliseconds: 10_000), hasSubscribers: false)
        subscribe("$SYS/a", at: 10_001)
        topics.published(at: MonotonicTime(milliseconds: 10_002), hasSubscribers: false)
        #expect(topics.deadline == MonotonicTime(milliseconds: 20_002))
    }

    @Test("without subscribers nothing is published and no timer is set")
    func sleepsWithoutSubscribers() throws {
        let link = ShardLink()
        #expect(deadline(of: link) == nil)
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("#", .atMostOnce), .subscribe("$share/g/#", .atMostOnce))
        #expect(deadline(of: link) == nil)
        let (before, interval) = (link.shard.now, UInt64(10_000))
        try link.send(watcher, .subscribe("$SYS/broker/uptime", .atMostOnce))
        #expect(deadline(of: link) == before.advanced(byMilliseconds: interval))
        link.advance(milliseconds: interval)
        #expect(
            deadline(of: link) == before.advanced(byMilliseconds: 2 * interval),
            "the next one an interval later")
    }

    @Test("the last subscriber's end is noticed at the next refresh")
    func endsWithLastSubscriber() throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .atMostOnce))
        #expect(deadline(of: link) != nil)
        link.lose(watcher)
        link.advance(milliseconds: 10_000)
        #expect(deadline(of: link) == nil)
    }

    @Test("the first subscriber after a long time gets current values")
    func freshAfterSilence() throws {
        let link = ShardLink()
        let first = try link.connect("first")
        try link.send(first, .subscribe("$SYS/broker/uptime", .atMostOnce))
        link.lose(first)
        link.advance(milliseconds: 10_000)
        link.advance(milliseconds: 3_600_000)
        let second = try link.connect("second")
        try link.send(second, .subscribe("$SYS/broker/uptime", .atMostOnce))
        #expect(try values(link, second) == ["$SYS/broker/uptime": "3610 seconds"])
    }

    @Test("subscribing again and again makes values no more often than the interval")
    func boundedRefresh() throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        for _ in 0..<5 {
            try link.send(watcher, .subscribe("$SYS/broker/uptime", .atMostOnce))
            #expect(try values(link, watcher) == ["$SYS/broker/uptime": "0 seconds"])
            try link.send(watcher, .unsubscribe(1, [Array("$SYS/broker/uptime".utf8)]))
            link.advance(milliseconds: 1_500)
            _ = try link.take(watcher)
        }
    }

    @Test("a subscriber with a session gets values again when it is back")
    func persistentSubscriber() throws {
        let link = ShardLink()
        let first = try link.connect("phone", cleanSession: false)
        try link.send(first, .subscribe("$SYS/broker/uptime", .atLeastOnce))
        link.lose(first)
        for _ in 0..<6 { link.advance(milliseconds: 10_000) }
        let second = try link.connect("phone", cleanSession: false)
        #expect(try link.take(second).isEmpty, "what it missed was never queued")
        link.advance(milliseconds: 10_000)
        #expect(try link.take(second) == [.publish("$SYS/broker/uptime", "70 seconds")])
        #expect(counters(of: link).dropped.total == 0)
    }

    @Test("a client that regains the right to them gets them again")
    func rightComesBack() throws {
        let may = "allow everyone subscribe $SYS/#"
        let link = ShardLink(access: try rules(may))
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/broker/uptime", .atMostOnce))
        _ = try link.take(watcher)
        try link.use("")
        link.advance(milliseconds: 10_000)
        #expect(deadline(of: link) == nil)
        link.advance(milliseconds: 3_600_000)
        try link.use(may)
        #expect(try link.take(watcher) == [.publish("$SYS/broker/uptime", "3610 seconds")])
        link.advance(milliseconds: 10_000)
        #expect(try link.take(watcher) == [.publish("$SYS/broker/uptime", "3620 seconds")])
        // Values are computed at most once per interval, however often the rules change.
        for _ in 0..<3 { try link.use(may) }
        #expect(try link.take(watcher).isEmpty)
    }

    @Test("members of a shared subscription share changed values")
    func sharedSubscription() throws {
        let link = ShardLink()
        let members = [try link.connect("one"), try link.connect("two")]
        for member in members {
            try link.send(member, .subscribe("$share/g/$SYS/broker/uptime", .atMostOnce))
            #expect(try link.take(member) == [.suback(1, [0])], "and nothing retained")
        }
        var received = 0
        for round in 1...4 {
            link.advance(milliseconds: 10_000)
            let packets = try members.flatMap { try link.take($0) }
            #expect(packets == [.publish("$SYS/broker/uptime", "\(round * 10) seconds")])
            received += packets.count
        }
        #expect(received == 4)
    }

    @Test(
        "[MQTT-4.7.2-1] wildcards at the first level match none of the topics",
        arguments: ["#", "+/#", "+/broker/uptime", "+/+/uptime", "+/broker/#"])
    func wildcards(filter: String) throws {
        let link = ShardLink()
        let other = try link.connect("other")
        try link.send(other, .subscribe("$SYS/#", .atMostOnce))
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe(filter, .atMostOnce))
        link.advance(milliseconds: 10_000)
        #expect(try link.take(watcher) == [.suback(1, [0])])
        #expect(try link.take(other).count > 1)
    }

    @Test("a subscriber that does not read misses values and keeps nothing waiting")
    func slowSubscriber() throws {
        let link = ShardLink({ $0.outputBytes = 64 })
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .atLeastOnce))
        for _ in 0..<10 { link.advance(milliseconds: 10_000) }
        let figures = link.shard.figures
        #expect(figures.queued == 0)
        #expect(counters(of: link).dropped.total == 0)
    }

    @Test("an interval of 0 turns the topics off")
    func off() throws {
        let link = ShardLink(systemTopicInterval: .zero)
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .atMostOnce))
        #expect(!isSampleDue(link))
        link.advance(milliseconds: 100_000)
        #expect(!isSampleDue(link))
        #expect(try link.take(watcher) == [.suback(1, [0])])
        #expect(deadline(of: link) == nil)
    }

    // MARK: What they are not

    @Test("the topics are in no counter and no store")
    func uncounted() throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        let before = link.shard.figures
        try link.send(watcher, .subscribe("$SYS/#", .exactlyOnce))
        for _ in 0..<3 { link.advance(milliseconds: 10_000) }
        #expect(try link.take(watcher).count > 40)
        let after = link.shard.figures
        #expect(after.publishesSent == before.publishesSent)
        #expect(after.packetsSent == before.packetsSent + 1, "its SUBACK")
        #expect(after.publishBytesSent == 0)
        #expect((after.retained, after.retainedBytes) == (0, 0))
        #expect(link.store.groups.isEmpty)
    }

    @Test("retained messages of clients are counted without the broker's own")
    func retainedCount() throws {
        let link = ShardLink()
        let client = try link.connect("client")
        try link.send(client, .publish("a", "x", retain: true))
        let bytes = link.shard.figures.retainedBytes
        try link.send(client, .subscribe("$SYS/broker/retained messages/count", .atMostOnce))
        #expect(try values(link, client) == ["$SYS/broker/retained messages/count": "1"])
        try link.send(client, .publish("b", "x", retain: true))
        let figures = link.shard.figures
        #expect(figures.retained == 2)
        #expect(figures.retainedBytes == 2 * bytes)
    }

    // MARK: What clients publish there

    @Test(
        "a client's PUBLISH there is acknowledged, dropped, and reported once",
        arguments: ["$SYS", "$SYS/", "$SYS/broker/uptime", "$SYS/x"], [false, true])
    func clientPublishes(topic: String, retain: Bool) throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .exactlyOnce))
        _ = try link.take(watcher)
        let client = try link.connect("client", cleanSession: false)
        try link.send(
            client, .publish(topic, "0", retain: retain),
            .publish(topic, "1", qos: .atLeastOnce, 1, retain: retain),
            .publish(topic, "2", qos: .exactlyOnce, 2, retain: retain), .pubrel(2))
        #expect(try link.take(client) == [.puback(1), .pubrec(2), .pubcomp(2)])
        #expect(try link.take(watcher).isEmpty)
        #expect(counters(of: link).dropped[.reservedTopic] == 3)
        let noted = link.notices.filter { notice in
            if case .dropping(_, .reservedTopic, _, _) = notice { true } else { false }
        }
        #expect(noted.count == 1)

        let late = try link.connect("late")
        try link.send(late, .subscribe(topic, .exactlyOnce))
        let kept = publishes(in: try link.take(late)).filter { $0.payload.count == 1 }
        #expect(kept.isEmpty)
    }

    @Test(
        "names that only look similar are ordinary topics",
        arguments: ["$SYSTEM/a", "$sys/a", "SYS"])
    func similarNames(topic: String) throws {
        let link = ShardLink()
        let client = try link.connect("client")
        try link.send(client, .subscribe(topic, .atMostOnce))
        _ = try link.take(client)
        try link.send(client, .publish(topic, "x"))
        #expect(try link.take(client) == [.publish(topic, "x")])
    }

    @Test(
        "a will there is dropped and counted when it is due",
        arguments: [false, true])
    func will(disconnects: Bool) throws {
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .atMostOnce))
        _ = try link.take(watcher)
        let client = try link.connect("client") {
            $0.will = PacketContent.Will(topic: "$SYS/will", message: [1], retain: true)
        }
        if disconnects { try link.send(client, .disconnect) } else { link.lose(client) }
        #expect(try link.take(watcher).isEmpty)
        let figures = link.shard.figures
        #expect(figures.retained == 0)
        #expect(counters(of: link).dropped[.reservedTopic] == (disconnects ? 0 : 1))
    }

    // MARK: Load averages

    @Test("a steady rate is approached by 1 - 1/e in the span of the average")
    func steadyLoad() {
        var now = MonotonicTime(milliseconds: 5_000)
        var load = LoadAverages(intervalMilliseconds: 10_000, now: now)
        var sample = LoadAverages.Sample(
            repeating: 0, count: LoadAverages.Quantity.allCases.count)
        let spans: [(LoadAverages.Span, Int)] = [(.one, 6), (.five, 30), (.fifteen, 90)]
        for step in 1...90 {
            now = now.advanced(byMilliseconds: 10_000)
            sample[LoadAverages.Quantity.publishesSent.rawValue] += 100
            load.add(sample, at: now)
            for (span, steps) in spans where step == steps {
                #expect(abs(load[.publishesSent, span] - 600 * 0.632_120_56) < 0.001)
            }
        }
        #expect(load[.publishesReceived, .one] == 0)
    }

    @Test("a late sample is the same as one in time and silence after it")
    func lateSample() {
        let start = MonotonicTime(milliseconds: 0)
        var sample = LoadAverages.Sample(
            repeating: 0, count: LoadAverages.Quantity.allCases.count)
        sample[0] = 1_000
        var late = LoadAverages(intervalMilliseconds: 10_000, now: start)
        late.add(sample, at: start.advanced(byMilliseconds: 120_000))
        var punctual = LoadAverages(intervalMilliseconds: 10_000, now: start)
        for step in 1...12 {
            punctual.add(sample, at: start.advanced(byMilliseconds: UInt64(step) * 10_000))
        }
        #expect(abs(late[.connections, .one] - punctual[.connections, .one]) < 1e-9)
        // 1,000 in 10 s are 6,000 a minute, smoothed over 10 s, then 110 s of silence.
        let expected = 6_000 * (1 - 0.846_481_724_9) * 0.159_879_746_1
        #expect(abs(late[.connections, .one] - expected) < 0.001)
    }

    @Test("load topics show rates per minute with two decimal places")
    func loadTopics() throws {
        let link = ShardLink()
        link.advance(milliseconds: 10_000)
        link.shard.outside.bytesReceived = 1_000
        #expect(isSampleDue(link))
        link.shard.takeSample()
        #expect(!isSampleDue(link))
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/broker/load/bytes/+/1min", .atMostOnce))
        #expect(
            try values(link, watcher) == [
                "$SYS/broker/load/bytes/received/1min": "921.11",
                "$SYS/broker/load/bytes/sent/1min": "0.00",
            ])
    }

    // MARK: Help

    // A shard cannot be copied, so `#expect` must not capture it.
    private func deadline(of link: ShardLink) -> MonotonicTime? { link.shard.nextDeadline }
    private func counters(of link: ShardLink) -> BrokerCounters { link.shard.counters }
    private func isSampleDue(_ link: ShardLink) -> Bool { link.shard.isSampleDue }

    private func publishes(in packets: [PacketContent]) -> [PacketContent.Publish] {
        packets.compactMap { packet in
            if case .publish(let publish) = packet { publish } else { nil }
        }
    }

    /// Payloads by topic that a client has received since the last call.
    private func values(_ link: ShardLink, _ client: Handle) throws -> [String: String] {
        var values: [String: String] = [:]
        for publish in publishes(in: try link.take(client)) {
            #expect(values.updateValue(text(publish.payload), forKey: text(publish.topic)) == nil)
        }
        return values
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// The topics in the tables of docs/metrics.md; load averages have three in a row.
    private func documentedTopics() throws -> [String] {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false)
            .dropLast(3).joined(separator: "/")
        let data = try Data(contentsOf: URL(fileURLWithPath: root + "/docs/metrics.md"))
        var topics: [String] = []
        for line in String(decoding: data, as: UTF8.self).split(separator: "\n")
        where line.hasPrefix("| `$SYS/") {
            let names = line.split(separator: "|")[0].split(separator: "`").filter {
                !$0.allSatisfy { $0 == " " || $0 == "," }
            }
            let first = String(names[0])
            topics.append(first)
            for sibling in names.dropFirst() {
                let parent = first.split(separator: "/").dropLast().joined(separator: "/")
                topics.append("\(parent)/\(sibling)")
            }
        }
        return topics
    }
}
