import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures
@testable import Store

/// Receipts follow messages of shared groups from member to member.
@Suite("Receipts of shared groups")
struct SharedReceiptTests {
    private static let group = "$share/g/t"

    private func publish(_ id: String, _ link: ShardLink, qos: QoS = .atLeastOnce) {
        var publication = Publication(
            topic: Array("t".utf8), payload: Array(id.utf8), qos: qos)
        publication.receiptID = Array(id.utf8)
        link.shard.publish(publication) { _ in }
        link.turn()
        link.commitAll()
    }

    private func receipt(_ id: String, _ link: ShardLink) throws -> MessageReceipt {
        let found = link.shard.receipt(of: OwnedName(Array(id.utf8), of: .unknown))
        return try #require(found)
    }

    /// Each receiver of a message as "client state reason".
    private func receivers(_ id: String, _ link: ShardLink) throws -> [String] {
        let found = try receipt(id, link).receivers
        return try #require(found).map { receiver in
            "\(receiver.clientID) \(receiver.state)" + (receiver.reason.map { " \($0)" } ?? "")
        }
    }

    /// The events so far as "message client outcome reason".
    private func events(_ link: ShardLink) throws -> [String] {
        let answers = Answers<[ReceiptEvent]>()
        link.shard.receiptEvents(after: 0, most: 1_000, reply: answers.reply)
        link.turn()
        link.advance(milliseconds: 10_000)
        return try #require(try answers.values.last?.get()).map { event in
            "\(event.messageID) \(event.clientID) \(event.outcome)"
                + (event.reason.map { " \($0)" } ?? "")
        }
    }

    private func member(
        _ link: ShardLink, _ name: String, cleanSession: Bool = false, filter: String = group
    ) throws -> Handle {
        let handle = try link.connect(name, cleanSession: cleanSession)
        try link.send(handle, .subscribe(filter, .atLeastOnce))
        link.commitAll()
        _ = try link.take(handle)
        return handle
    }

    private func settle(_ link: ShardLink) {
        for _ in 1...20 {
            link.turn()
            link.commitAll()
        }
    }

    enum End: CaseIterable, Sendable {
        case cleanConnect, expiry, byOperator
    }

    private func end(_ name: String, _ how: End, _ link: ShardLink) throws {
        switch how {
        case .cleanConnect: link.lose(try link.connect(name))
        case .expiry: link.advance(milliseconds: 3_570_000)
        case .byOperator:
            link.shard.endSession(of: name) { _ in }
            link.turn()
        }
        settle(link)
    }

    private func makeLink(isDurable: Bool = true) -> ShardLink {
        ShardLink(
            {
                $0.maxInFlight = 1
                $0.sessionExpiry = .seconds(3_600)
                $0.keepsReceiptEvents = true
            }, isDurable: isDurable)
    }

    @Test(
        "a member's session ends: its messages are followed to the other, and no false end is told",
        arguments: End.allCases, [true, false])
    func follows(how: End, isDurable: Bool) throws {
        let link = makeLink(isDurable: isDurable)
        let one = try member(link, "one")
        publish("flying", link)
        publish("waiting", link)
        #expect(try receivers("flying", link) == ["one sent"])
        link.lose(one)
        // Its session is younger, and lives on.
        link.advance(milliseconds: 60_000)
        let two = try member(link, "two")
        link.lose(two)
        try end("one", how, link)
        for id in ["flying", "waiting"] {
            #expect(try receivers(id, link) == ["two queued"])
            let found = try receipt(id, link)
            #expect(found.counts.receivers == 1 && found.counts.pending == 1)
            #expect(found.receivers?.first?.group == Self.group)
        }
        #expect(try events(link) == [])
        #expect(Set(try link.takeAll(try link.beginConnect("two"))) == ["flying", "waiting"])
        for id in ["flying", "waiting"] {
            #expect(try receivers(id, link) == ["two acknowledged"])
        }
        #expect(
            Set(try events(link)) == ["flying two acknowledged", "waiting two acknowledged"])
    }

    @Test(
        "nobody of the group takes it: it is told as dropped, with its reason",
        arguments: End.allCases)
    func nobody(how: End) throws {
        let link = makeLink()
        let one = try member(link, "one")
        publish("flying", link)
        publish("waiting", link)
        link.lose(one)
        link.advance(milliseconds: 60_000)
        try end("one", how, link)
        let lost = ["flying one dropped session_ended", "waiting one dropped session_ended"]
        #expect(Set(try events(link)) == Set(lost))
        #expect(try receipt("waiting", link).counts.dropped == 1)
    }

    @Test("the other member's queue is full: the receipt says whose, and why")
    func full() throws {
        let link = makeLink()
        link.shard.limits.queueMessages = 1
        link.shard.limits.queuePolicy = .dropNewest
        let (one, two) = (try member(link, "one"), try member(link, "two"))
        link.lose(one)
        link.lose(two)
        publish("a", link)
        publish("b", link)
        #expect(try receivers("a", link) == ["one queued"])
        try end("one", .cleanConnect, link)
        #expect(try receivers("a", link) == ["two dropped queue_full"])
        #expect(try receivers("b", link) == ["two queued"])
        #expect(try events(link) == ["a two dropped queue_full"])
    }

    @Test("a sent QoS 2 message, and one of a plain subscription, end with the session")
    func others() throws {
        let link = makeLink()
        let one = try link.connect("one", cleanSession: false)
        try link.send(one, .subscribe(Self.group, .exactlyOnce), .subscribe("u", .atLeastOnce))
        link.commitAll()
        publish("flying", link, qos: .exactlyOnce)
        publish("waiting", link)
        link.lose(one)
        link.lose(try member(link, "two"))
        try end("one", .byOperator, link)
        #expect(try receivers("flying", link) == ["one dropped session_ended"])
        #expect(try receivers("waiting", link) == ["two queued"])
    }

    @Test(
        "a clean session leaves more than a turn hands over, some of them after its member is gone")
    func many() throws {
        let link = makeLink()
        let one = try member(link, "one", cleanSession: true)
        for number in 1...300 { publish("m\(number)", link) }
        let two = try member(link, "two")
        link.lose(two)
        link.shard.lost(one, .peerClosed)
        // The first turn hands over a part; the others are still followed.
        _ = link.turnOnce()
        #expect(try receipt("m300", link).counts.pending == 1)
        settle(link)
        for number in 1...300 { #expect(try receivers("m\(number)", link) == ["two queued"]) }
        #expect(try events(link) == [])
    }

    @Test("receipts that are dropped while their messages are handed over leave nothing behind")
    func droppedMeanwhile() throws {
        let link = makeLink()
        let one = try member(link, "one", cleanSession: true)
        for number in 1...300 { publish("m\(number)", link) }
        link.lose(try member(link, "two"))
        link.shard.lost(one, .peerClosed)
        _ = link.turnOnce()
        link.shard.limits.receipts = 0
        settle(link)
        #expect(link.shard.figures.feature("hermes_receipts") == 0)
        #expect(try link.takeAll(try link.beginConnect("two"), rounds: 2_000).count == 300)
    }

    @Test("a start goes on to hand over the queue of an ended session, and follows it")
    func restart() throws {
        let link = makeLink()
        let one = Array("one".utf8)
        _ = one.withUnsafeBytes { clientID in
            link.shard.visit(
                StoredSession(
                    number: 7, clientID: clientID, userName: nil, isAttached: false,
                    detachedSinceMs: 0, horizon: 0, end: 1, waitingMessages: 1, waitingBytes: 1,
                    holdsShared: true, hasEnded: true))
        }
        let receipt = StoredReceipt(
            number: 1, atMs: link.shard.wallClockMs, messageID: Array("m".utf8), owner: .unknown,
            topic: Array("t".utf8))
        link.shard.features.receipts.restore(receipt, pool: link.shard.pool)
        let receiver = StoredReceiver(
            receipt: 1, place: 0, session: 7, position: 0, clientID: one)
        link.shard.restoreReceiver(receiver, receiver.end(nil))
        link.shard.features.receipts.restore(
            ReceiverDetail(receipt: 1, place: 0, text: Array(Self.group.utf8)),
            pool: link.shard.pool)
        link.shard.finishRestoring()
        link.store.holdsReads = true
        link.turn()
        let first = try self.receipt("m", link).receivers?.first
        let found = try #require(first)
        #expect(found.state == .queued && found.group == Self.group)
        // The store has the session and no message any more.
        link.store.holdsReads = false
        settle(link)
        #expect(try receivers("m", link) == ["one dropped session_ended"])
    }
}
