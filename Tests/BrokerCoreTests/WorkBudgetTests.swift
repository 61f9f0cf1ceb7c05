import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Work of a turn")
struct WorkBudgetTests {
    @Test("a connection gets half of what is left; when all is spent, what costs little passes")
    func shares() {
        let pool = BytePool()
        defer { pool.destroy() }
        var budget = WorkBudget()
        budget.beginTurn(hasUnsent: false, hasWaiting: false, pool: pool)
        budget.beginShare()
        budget.spend(40_000)
        #expect(!budget.admits(.publish) && !budget.admits(.pingreq))
        budget.beginShare()
        #expect(budget.admits(.publish))
        budget.spend(40_000)
        #expect(budget.isSpent)
        budget.beginShare()
        for type in [PacketType.publish, .subscribe, .unsubscribe] { #expect(!budget.admits(type)) }
        for type in [PacketType.pingreq, .puback, .disconnect] { #expect(budget.admits(type)) }
        budget.spend(300)
        #expect(!budget.admits(.pingreq), "a flood of small packets has a share too")
    }

    @Test("connections that wait since earlier turns get half of a turn's work")
    func reserve() {
        let pool = BytePool()
        defer { pool.destroy() }
        var budget = WorkBudget()
        budget.beginTurn(hasUnsent: false, hasWaiting: true, pool: pool)
        budget.spend(1_000_000)
        #expect(budget.isSpent)
        budget.releaseReserve()
        #expect(!budget.isSpent)
    }

    @Test("while outputs grow faster than sockets take them, a turn does an eighth of its work")
    func behind() {
        let pool = BytePool()
        defer { pool.destroy() }
        var budget = WorkBudget()
        budget.beginTurn(hasUnsent: true, hasWaiting: false, pool: pool)
        let output = pool.allocate(16 * 1_024 * 1_024)
        budget.beginTurn(hasUnsent: true, hasWaiting: false, pool: pool)
        budget.spend(10_000)
        #expect(budget.isSpent)
        pool.deallocate(output, count: 16 * 1_024 * 1_024)
        budget.beginTurn(hasUnsent: true, hasWaiting: false, pool: pool)
        budget.spend(10_000)
        #expect(!budget.isSpent)
    }

    /// A shard with subscribers to `t`, and a link that takes single turns.
    private func link(subscribers: Int) throws -> (ShardLink, [Handle]) {
        let link = ShardLink()
        let handles = try (0..<subscribers).map {
            try link.subscriber("subscriber-\($0)", to: "t", .atMostOnce, cleanSession: true)
        }
        return (link, handles)
    }

    @Test("a burst to many is spread over turns, and another client's PINGREQ is answered between")
    func burst() throws {
        let (link, subscribers) = try link(subscribers: 1_000)
        let publisher = try link.connect("publisher")
        let quiet = try link.connect("quiet")
        let burst = try (0..<100).flatMap { try PacketContent.publish("t", "\($0)").encoded() }
        let consumed = burst.withUnsafeBytes { link.shard.receive(publisher, $0) }
        #expect(consumed > 0 && consumed < burst.count)
        let isWaiting = link.shard.awaitsTurn(publisher)
        #expect(isWaiting)
        try link.send(quiet, .pingreq)
        #expect(try link.take(quiet) == [.pingresp])
        link.send(publisher, Array(burst[consumed...]))
        for subscriber in subscribers {
            #expect(try link.take(subscriber).count == 100)
        }
    }

    @Test("one message to very many: the answer to a PINGREQ does not wait until all of it is sent")
    func sends() throws {
        let (link, _) = try link(subscribers: 3_000)
        let publisher = try link.connect("publisher")
        let quiet = try link.connect("quiet")
        let message = try PacketContent.publish("t", "x").encoded()
        _ = message.withUnsafeBytes { link.shard.receive(publisher, $0) }
        let ping = try PacketContent.pingreq.encoded()
        _ = ping.withUnsafeBytes { link.shard.receive(quiet, $0) }
        let pool = link.shard.pool
        var sent = 0
        var place: Int?
        while true {
            let step = link.shard.nextStep()
            if case .send(let handle) = step {
                sent += 1
                if handle == quiet { place = sent }
                link.shard.withOutput(of: handle) { $0.removeAll(in: pool) }
            } else if case .finish = step {
                break
            }
        }
        #expect(sent == 128)
        #expect(try #require(place) <= 2)
        #expect(link.shard.nextDeadline == link.shard.now, "the rest follows at once")
        link.turn()
    }

    @Test("bursts to many, one after the other: a message to one client is sent in its own turn")
    func promptSends() throws {
        let (link, _) = try link(subscribers: 1_000)
        let publisher = try link.connect("publisher")
        let (quiet, friend) = (try link.connect("quiet"), try link.connect("friend"))
        try link.send(friend, .subscribe(1, [PacketContent.Request("own", .atLeastOnce)]))
        _ = try link.take(friend)
        let burst = try (0..<40).flatMap { try PacketContent.publish("t", "\($0)").encoded() }
        let message = try PacketContent.publish("own", "x", qos: .atLeastOnce, 1).encoded()
        let pool = link.shard.pool
        for _ in 0..<10 {
            // The line of those who are to be sent grows by a thousand before and after.
            _ = burst.withUnsafeBytes { link.shard.receive(publisher, $0) }
            _ = message.withUnsafeBytes { link.shard.receive(quiet, $0) }
            _ = burst.withUnsafeBytes { link.shard.receive(publisher, $0) }
            var sent: [Handle] = []
            while true {
                let step = link.shard.nextStep()
                if case .send(let handle) = step {
                    sent.append(handle)
                    link.shard.withOutput(of: handle) { $0.removeAll(in: pool) }
                } else if case .finish = step {
                    break
                }
            }
            #expect(sent.count == 128 && sent.contains(friend) && sent.contains(quiet))
        }
        link.turn()
    }

    @Test("receivers cost their publisher also when the message is dropped for them")
    func droppedDeliveries() throws {
        let link = ShardLink({ $0.outputBytes = 1 })
        let readers = try (0..<1_000).map {
            try link.subscriber("reader-\($0)", to: "t", .atMostOnce, cleanSession: true)
        }
        for reader in readers { link.block(reader) }
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("t", "fills their outputs"))
        let before = link.shard.counters.dropped[.slowReader]
        let burst = try (0..<100).flatMap { try PacketContent.publish("t", "\($0)").encoded() }
        let consumed = burst.withUnsafeBytes { link.shard.receive(publisher, $0) }
        #expect(link.shard.counters.dropped[.slowReader] > before)
        #expect(consumed < burst.count)
    }

    @Test("wills cost what their match visits")
    func costlyWills() throws {
        let link = ShardLink()
        let subscriber = try link.connect("subscriber")
        for number in 0..<4_096 {
            let levels = (0..<12).map { number >> $0 & 1 == 0 ? "a" : "+" }
            try link.send(
                subscriber,
                .subscribe(
                    1, [PacketContent.Request(levels.joined(separator: "/") + "/#", .atMostOnce)]))
        }
        _ = link.takeBytes(subscriber)
        let ending = try (0..<50).map { number in
            try link.connect("ending-\(number)") {
                let topic = String(repeating: "a/", count: 12) + "\(number)"
                $0.will = PacketContent.Will(topic: topic, message: [1])
            }
        }
        for handle in ending { link.shard.lost(handle, .peerClosed) }
        link.turnOnce()
        let someWait = link.shard.connections.hasEnding
        #expect(someWait)
        link.turn()
        #expect(try link.take(subscriber).count == 50)
    }

    @Test("a stored message to very many, once committed, is sent behind all other output")
    func committedBulk() throws {
        let link = ShardLink(isImmediate: false)
        for number in 0..<200 {
            _ = try link.subscriber(
                "subscriber-\(number)", to: "t", .atLeastOnce, cleanSession: number > 0)
        }
        let (publisher, quiet) = (try link.connect("publisher"), try link.connect("quiet"))
        try link.send(publisher, .publish("t", "x", qos: .atLeastOnce, 1))
        link.store.completeAll()
        let ping = try PacketContent.pingreq.encoded()
        var sent: [Handle] = []
        var hasPinged = false
        let pool = link.shard.pool
        while true {
            let step = link.shard.nextStep()
            if case .send(let handle) = step {
                if !hasPinged {
                    hasPinged = true
                    _ = ping.withUnsafeBytes { link.shard.receive(quiet, $0) }
                }
                sent.append(handle)
                link.shard.withOutput(of: handle) { $0.removeAll(in: pool) }
            } else if case .finish = step {
                break
            }
        }
        #expect(sent.firstIndex(of: quiet).map { $0 <= 4 } == true)
        link.turn()
    }

    @Test("a large payload for very many is shared by their outputs, a small one is copied")
    func sharedPayload() throws {
        let (link, subscribers) = try link(subscribers: 1_100)
        let publisher = try link.connect("publisher")
        for (count, isShared) in [(100, false), (1_024, true)] {
            let payload = String(repeating: "x", count: count)
            let bytes = try PacketContent.publish("t", .init(stringLiteral: payload)).encoded()
            _ = bytes.withUnsafeBytes { link.shard.receive(publisher, $0) }
            var segments = [OutputQueue.Segment](repeating: OutputQueue.Segment(), count: 4)
            let filled = link.shard.withOutput(of: subscribers[0]) { output in
                output.fill(&segments, capacity: 4)
            }
            #expect(filled == (isShared ? 2 : 1))
            link.turn()
            for subscriber in subscribers { #expect(try link.take(subscriber).count == 1) }
        }
    }

    @Test("wills of connections that end together are spread over turns")
    func wills() throws {
        let (link, subscribers) = try link(subscribers: 1_000)
        let ending = try (0..<100).map { number in
            try link.connect("ending-\(number)") {
                $0.will = PacketContent.Will(topic: "t", message: [1])
            }
        }
        for handle in ending { link.shard.lost(handle, .peerClosed) }
        guard case .send(let handle) = link.shard.nextStep() else {
            Issue.record("nothing to send")
            return
        }
        let waiting = link.shard.connections.endingCount
        #expect(waiting > 80, "\(waiting) of 100")
        link.shard.connections.markDirty(handle)
        link.turn()
        for subscriber in subscribers { #expect(try link.take(subscriber).count == 100) }
    }
}
