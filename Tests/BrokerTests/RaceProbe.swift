import Broker
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@Suite("probe") struct RaceProbe {
    @Test func p1KeepAliveAfterSlowCommit() throws {
        let link = ShardLink(isImmediate: false)
        let c = try link.beginConnect("c") { $0.keepAlive = 1 }
        link.advance(milliseconds: 10_000)
        link.commitAll()
        link.turn()
        link.advance(milliseconds: 100)
        link.turn()
        #expect(!link.closed.contains(c), "\(link.closeReasons)")
    }
    @Test func p2UnsubscribeDuringWalk() throws {
        let link = ShardLink()
        let p = try link.connect("p")
        for n in 0..<5_000 { try link.send(p, .publish("r/\(n)", "x", retain: true)) }
        let c = try link.connect("c")
        try link.send(c, .subscribe("r/#", .atMostOnce))
        let before = try link.take(c).payloads.count
        try link.send(c, .unsubscribe(2, [Array("r/#".utf8)]))
        for _ in 0..<100 { link.turn() }
        let packets = try link.take(c)
        let index = packets.firstIndex(of: .unsuback(2)) ?? 0
        #expect(packets[index...].count == 1, "\(before) before; \(packets.count - index - 1) after UNSUBACK")
    }
    @Test func p3RetainedLeak() throws {
        let link = ShardLink(isImmediate: false)
        let p = try link.connect("p")
        try link.send(p, .publish("a", "one", qos: .atLeastOnce, 1, retain: true))
        try link.send(p, .publish("b", "two", qos: .atLeastOnce, 2, retain: true))
        link.store.complete(link.store.pending[1])
        link.turn()
        let c = try link.connect("c")  // completes all!
        _ = c
        let link2 = ShardLink(isImmediate: false)
        let q = try link2.connect("p")
        let d = try link2.connect("d")
        try link2.send(q, .publish("a", "one", qos: .atLeastOnce, 1, retain: true))
        try link2.send(q, .publish("b", "two", qos: .atLeastOnce, 2, retain: true))
        link2.store.complete(link2.store.pending[1])
        link2.turn()
        try link2.send(d, .subscribe("a", .atLeastOnce))
        link2.turn()
        #expect(try link2.take(d).payloads == [])
    }
    @Test func p4LoadLeak() throws {
        let link = ShardLink(isImmediate: false)
        let s = try link.subscriber("s", to: "a", .atLeastOnce)
        let p = try link.connect("p")
        // Fill window; messages beyond 64 waiting go to store.
        for n in 1...200 { try link.send(p, .publish("a", "\(n)", qos: .atLeastOnce, PacketIdentifier(number: n))) }
        // Complete nothing of the messages but any load tickets.
        var seen = 0
        for _ in 0..<50 {
            guard link.store.pending.count > 200 else { break }
            link.store.complete(link.store.pending[200])
            seen += 1
            link.turn()
        }
        #expect(try link.take(s).payloads == [], "\(seen)")
    }
    @Test func p5Ghosts() throws {
        let link = ShardLink(isImmediate: false)
        let s = try link.subscriber("s", to: "a", .atMostOnce)
        let o = try link.subscriber("o", to: "a", .atLeastOnce)
        _ = o
        let p = try link.connect("p")
        for n in 1...5 { try link.send(p, .publish("a", "\(n)", qos: .atLeastOnce, PacketIdentifier(number: n))) }
        link.lose(s)
        link.commitAll()
        let f = link.shard.client(Array("s".utf8)) { _ in "" }
        #expect(f?.summary.queued == 0)
        #expect(link.store.positions(of: 1) == [])
    }
    @Test func p6DropDuringLoad() throws {
        let link = ShardLink({ $0.queueBytes = 1_000 })
        let s = try link.subscriber("s", to: "a", .atLeastOnce)
        link.lose(s)
        let p = try link.connect("p")
        let pad = String(repeating: "x", count: 100)
        for n in 1...8 { try link.send(p, .publish("a", "\(n)" + pad, qos: .atLeastOnce, PacketIdentifier(number: n))) }
        link.store.holdsReads = true
        let t = try link.beginConnect("s")
        for n in 9...14 { try link.send(p, .publish("a", "\(n)" + pad, qos: .atLeastOnce, PacketIdentifier(number: n))) }
        link.store.holdsReads = false
        link.turn()
        for packet in try link.take(t) { if case .publish(let publish) = packet { print("P6", publish.delivery, String(decoding: publish.payload.prefix(2), as: UTF8.self)) } else { print("P6", packet) } }
        print("P6 dropped", link.shard.counters.dropped[.queueFull])
    }
    @Test func p7SharedDurable() throws {
        let link = ShardLink()
        let s = try link.subscriber("s", to: "$share/g/a", .atLeastOnce)
        let t = try link.subscriber("t", to: "$share/g/a", .atLeastOnce)
        link.lose(s)
        link.lose(t)
        let p = try link.connect("p")
        for n in 1...4 { try link.send(p, .publish("a", "\(n)", qos: .atLeastOnce, PacketIdentifier(number: n))) }
        // s leaves for good
        let x = try link.connect("s", cleanSession: true)
        _ = x
        let again = try link.beginConnect("t")
        #expect(try link.takeAll(again).sorted() == ["1", "2", "3", "4"])
    }
    @Test func p8Truncation() throws {
        let link = ShardLink()
        let s = try link.subscriber("s", to: "a", .atLeastOnce)
        let p = try link.connect("p")
        for n in 1...30_000 { try link.send(p, .publish("a", "\(n)", qos: .atLeastOnce, PacketIdentifier(number: n))) }
        print("P8 waiting", link.shard.figures.queued)
        link.lose(s)
        print("P8 waiting after", link.shard.figures.queued)
        let clock = ContinuousClock()
        let time = try clock.measure { try link.send(p, .publish("a", "last", qos: .atLeastOnce, 1)) }
        print("P8 took", time, link.shard.figures.queued)
    }
    @Test func p9WalkLost() throws {
        let link = ShardLink()
        let p = try link.connect("p")
        for n in 0..<1_000 { try link.send(p, .publish("r/\(n)", "\(n)", qos: .atLeastOnce, 1, retain: true)) }
        let c = try link.connect("c", cleanSession: false)
        try link.send(c, .subscribe("r/#", .atLeastOnce))
        link.lose(c)
        let again = try link.beginConnect("c")
        let got = try link.takeAll(again, rounds: 2_000)
        #expect(Set(got).count == 1_000)
    }
}
