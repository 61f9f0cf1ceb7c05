import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Traces of topics")
struct TopicTraceTests {
    /// What traces are told: for each line the traces and its text, and what each misses.
    private func lines(
        _ link: ShardLink
    ) -> (lines: [([UInt32], String)], leftOut: [UInt32: Int]) {
        var lines: [([UInt32], String)] = []
        let leftOut = link.shard.takeTopicEvents { traces, _, text, _ in
            lines.append((traces, text))
        }
        return (lines, Dictionary(uniqueKeysWithValues: leftOut.map { ($0.trace, $0.count) }))
    }

    private func link(_ subscribers: Int) throws -> (link: ShardLink, publisher: Handle) {
        let link = ShardLink()
        for number in 0..<subscribers {
            _ = try link.subscriber("s\(number)", to: "t/#", .atMostOnce, cleanSession: true)
        }
        return (link, try link.connect("publisher"))
    }

    @Test("a trace gets as many lines as it has room for, and is told how many it misses")
    func room() throws {
        let (link, publisher) = try link(10)
        link.shard.traceTopics("t/#", for: 1)
        link.shard.traceTopics("t/+", for: 2)
        link.shard.traceTopics("x", for: 3)
        link.shard.setTraceRoom { $0 == 1 ? 3 : 100 }
        try link.send(publisher, .publish("t/a", "x"))
        let (lines, leftOut) = lines(link)
        #expect(lines.count == 12)
        #expect(lines[0] == ([1, 2], "publishes t/a, QoS 0, 1 bytes"))
        #expect(lines[1] == ([1, 2], "10 receive t/a"))
        #expect(lines[2].0 == [1, 2] && lines[3].0 == [2])
        #expect(leftOut == [1: 9])
        link.shard.setTraceRoom { _ in 0 }
        try link.send(publisher, .publish("t/a", "x"), .publish("x", "x"))
        let without = self.lines(link)
        #expect(without.lines.isEmpty)
        #expect(without.leftOut == [1: 12, 2: 12, 3: 2])
    }

    @Test("lines are charged to the turn; without room looking is")
    func charge() throws {
        let (link, publisher) = try link(100)
        func units(_ room: Int) throws -> Int {
            link.shard.setTraceRoom { _ in room }
            let before = link.shard.context.budget.unitsLeft
            link.receive(publisher, try PacketContent.publish("t/a", "x").encoded())
            defer { link.turn() }
            return before - link.shard.context.budget.unitsLeft
        }
        // The first message makes the match, which is kept.
        _ = try units(0)
        let plain = try units(0)
        for trace in UInt32(1)...16 { link.shard.traceTopics("t/#", for: trace) }
        let looks = try units(0) - plain
        // The message is looked at when it comes and when it is delivered.
        #expect((256...400).contains(looks))
        let told = try units(1_000) - plain
        #expect(told > 102 * 16 * 100)
    }

    @Test("a burst on a traced topic is divided, and another client is answered between")
    func burst() throws {
        let (link, publisher) = try link(50)
        let quiet = try link.connect("quiet")
        for trace in UInt32(1)...16 { link.shard.traceTopics("t/#", for: trace) }
        let burst = try (0..<40).flatMap { try PacketContent.publish("t/\($0)", "x").encoded() }
        link.shard.setTraceRoom { _ in 1_000 }
        link.receive(publisher, burst)
        let isWaiting = link.shard.awaitsTurn(publisher)
        #expect(isWaiting && link.unreadCount(of: publisher) > 0)
        var turns = 0
        while link.shard.hasTurnWaiters, turns < 1_000 {
            link.receive(quiet, try PacketContent.pingreq.encoded())
            link.turnOnce()
            #expect(try link.take(quiet) == [.pingresp])
            turns += 1
        }
        #expect(turns >= 10)
        let (lines, leftOut) = lines(link)
        // 52 lines for each message, of which a trace takes 1,000.
        #expect(lines.count == 1_000)
        #expect(leftOut == Dictionary(uniqueKeysWithValues: (1...16).map { (UInt32($0), 1_080) }))
    }
}
