import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

/// The work of one turn is bounded, whatever is due.
@Suite("Work of one turn")
struct TurnTests {
    @Test("of sessions that expire at once, a turn removes 1,000, and the next one follows")
    func expiries() throws {
        let link = ShardLink({ $0.sessionExpiry = .seconds(60) })
        for number in 1...2_500 {
            link.lose(try link.connect("c\(number)", cleanSession: false))
        }
        let before = link.notices.count
        for left in [1_500, 500, 0] {
            // The clock stands still after the first turn.
            link.advance(milliseconds: left == 1_500 ? 61_000 : 0)
            #expect(link.shard.figures.sessions == left)
            let deadline = link.shard.nextDeadline
            #expect((deadline.map { $0 <= link.shard.now } ?? false) == (left > 0))
        }
        #expect(link.shard.counters.sessionsExpired == 2_500)
        #expect(link.notices.count == before + 2_500)
    }

    @Test("subscriptions of an ended session go in slices, and nobody gets anything by them")
    func endOfManySubscriptions() throws {
        let link = ShardLink()
        let filters = (0..<6_000).map { "\($0)/a/b/c" }
        let one = try link.connect("one")
        for first in stride(from: 0, to: filters.count, by: 1_000) {
            let requests = filters[first..<(first + 1_000)].map {
                PacketContent.Request($0, .atLeastOnce)
            }
            try link.send(one, .subscribe(1, Array(requests)))
        }
        for group in 0..<100 { try link.send(one, .subscribe("$share/g/\(group)", .atLeastOnce)) }
        #expect(link.shard.figures.subscriptions == 6_000)
        let publisher = try link.connect("publisher")
        link.lose(one)
        #expect(link.shard.figures.sessions == 1)
        var left = link.shard.figures.subscriptions
        #expect(left > 4_000)
        // Its index is not given to others meanwhile.
        let other = try link.connect("other")
        var turns = 0
        while link.shard.figures.subscriptions > 0 {
            for topic in ["0/a/b/c", "5999/a/b/c", "0", "99"] {
                for qos in QoS.allCases {
                    try link.send(publisher, .publish(topic, "x", qos: qos, 1))
                }
            }
            let now = link.shard.figures.subscriptions
            #expect(now < left || now == 0)
            (left, turns) = (now, turns + 1)
            guard turns < 1_000 else { break }
            link.turn()
        }
        link.turn()
        #expect(link.shard.figures.sharedSubscriptions == 0)
        #expect(link.shard.figures.queued == 0)
        #expect(try link.take(other) == [])
        #expect((link.shard.nextDeadline.map { $0 > link.shard.now } ?? true))
    }

    private func member(_ link: ShardLink, _ name: String, _ filter: String) throws -> Handle {
        let handle = try link.connect(name)
        try link.send(handle, .subscribe(filter, .atLeastOnce))
        _ = try link.take(handle)
        return handle
    }

    /// One group member with 1,000 waiting messages, another without any.
    private func link() throws -> (ShardLink, full: Handle, empty: Handle) {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let full = try member(link, "full", "$share/g/a")
        let publisher = try link.connect("publisher")
        for number in 1...1_000 {
            try link.send(publisher, .publish("a", "\(number)", qos: .atLeastOnce, 1))
        }
        return (link, full, try member(link, "empty", "$share/g/a"))
    }

    @Test("a long queue of a shared subscription changes hands 256 at a time, in order, and whole")
    func handOver() throws {
        let (link, full, empty) = try link()
        _ = try link.take(full)
        link.lose(full)
        for handed in [256, 512, 768, 1_000] {
            if handed > 256 { link.turn() }
            // One is in flight.
            #expect(link.shard.figures.queued == handed - 1)
            #expect((link.shard.nextDeadline == link.shard.now) == (handed < 1_000))
        }
        #expect(try link.takeAll(empty, rounds: 1_001) == (1...1_000).map { "\($0)" })
    }

    @Test("a message without remaining members is dropped, even if its group's index is reused")
    func groupEnds() throws {
        let (link, full, empty) = try link()
        link.lose(full)
        link.lose(empty)
        let other = try member(link, "other", "$share/h/b")
        for _ in 1...10 { link.turn() }
        #expect(try link.take(other) == [])
        #expect(link.shard.figures.queued == 0)
        // One slice had been handed to the second member.
        #expect(link.shard.counters.dropped[.offline] == 1_000 - 256)
    }

    @Test("a shutdown hands all messages over to offline persistent members")
    func shutDown() throws {
        let (link, _, _) = try link()
        let absent = try link.connect("absent", cleanSession: false)
        try link.send(absent, .subscribe("$share/g/a", .atLeastOnce))
        link.lose(absent)
        link.shard.limits.queueMessages = 2_000
        link.shard.shutDown()
        link.turn()
        #expect(link.shard.figures.queued == 1_000)
    }
}
