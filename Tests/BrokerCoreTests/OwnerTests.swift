import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Identifiers belong to the token that gave them, and no token takes all the room.
@Suite("Owners of identifiers and of room")
struct OwnerTests {
    private static let shop = OwnerID(rawValue: 1)
    private static let news = OwnerID(rawValue: 2)

    private static func name(_ id: String, _ owner: OwnerID) -> OwnedName {
        OwnedName(Array(id.utf8), of: owner)
    }

    private static func publication(_ id: String, _ owner: OwnerID, topic: String = "t")
        -> Publication
    {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array("payload".utf8), qos: .atLeastOnce)
        publication.messageID = Array(id.utf8)
        publication.owner = owner
        return publication
    }

    private func publish(_ publication: Publication, _ link: ShardLink) -> PublishOutcome? {
        let answers = Answers<PublishOutcome>()
        link.shard.publish(publication, reply: answers.reply)
        link.turn()
        link.commitAll()
        return answers.last
    }

    /// Schedules a message that is due in an hour.
    private func schedule(_ id: String, _ owner: OwnerID, _ link: ShardLink) -> PublishOutcome? {
        var publication = Self.publication(id, owner)
        publication.schedule = MessageSchedule(
            messageID: Array(id.utf8), deliverAtMs: link.shard.context.wallClockMs + 3_600_000,
            expiresInMs: 0)
        return publish(publication, link)
    }

    private func push(_ id: String, _ owner: OwnerID, _ link: ShardLink) -> PublishOutcome? {
        let answers = Answers<PublishOutcome>()
        let request = PushRequest(
            publication: Self.publication(id, owner), pushID: Array(id.utf8),
            target: .clients([Array("phone".utf8)]),
            deliverAtMs: link.shard.context.wallClockMs + 3_600_000, expiresInMs: 0, spreadMs: 0)
        link.shard.push(request, reply: answers.reply)
        link.turn()
        link.commitAll()
        return answers.last
    }

    private static func isScheduled(_ outcome: PublishOutcome?) -> Bool {
        if case .scheduled = outcome { true } else { false }
    }

    /// How many of many an owner may add before one is refused.
    private func most(_ add: (Int) -> PublishOutcome?) -> Int {
        (0..<1_000).first { !Self.isScheduled(add($0)) } ?? 1_000
    }

    @Test("two owners schedule under one identifier, and each changes its own")
    func scheduled() throws {
        let link = ShardLink(isImmediate: false)
        #expect(Self.isScheduled(schedule("order-1", Self.shop, link)))
        #expect(Self.isScheduled(schedule("order-1", Self.news, link)))
        #expect(schedule("order-1", Self.shop, link) == .alreadyScheduled)
        let answers = Answers<Bool>()
        link.shard.changeScheduled(Self.name("order-1", Self.news), .cancel, reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(answers.last == true)
        #expect(link.shard.features.scheduled.find(Self.name("order-1", Self.news)) == nil)
        #expect(link.shard.features.scheduled.find(Self.name("order-1", Self.shop)) != nil)
        // One that only reads finds whosever there is.
        #expect(link.shard.scheduledMessage(Self.name("order-1", .unknown)) != nil)
    }

    @Test("a receipt is its owner's, though another publishes under its identifier")
    func receipts() throws {
        let link = ShardLink(isImmediate: false)
        for (owner, topic) in [(Self.shop, "orders"), (Self.news, "news")] {
            var publication = Self.publication("m-1", owner, topic: topic)
            publication.receiptID = publication.messageID
            _ = publish(publication, link)
        }
        #expect(link.shard.receipt(of: Self.name("m-1", Self.shop))?.topic == "orders")
        #expect(link.shard.receipt(of: Self.name("m-1", Self.news))?.topic == "news")
        #expect(link.shard.receipt(of: Self.name("m-1", .unknown)) != nil)
    }

    @Test("an owner that sends to many pushes its own receipts out, and nobody else's")
    func receiptShares() throws {
        let link = ShardLink { $0.receipts = 8 }
        func publish(_ id: String, _ owner: OwnerID) {
            var publication = Self.publication(id, owner)
            publication.receiptID = publication.messageID
            _ = self.publish(publication, link)
        }
        publish("order-1", Self.shop)
        publish("order-2", Self.shop)
        for number in 1...40 { publish("news-\(number)", Self.news) }
        link.turn()
        for id in ["order-1", "order-2"] {
            #expect(link.shard.receipt(of: Self.name(id, Self.shop)) != nil, "\(id)")
        }
        #expect(link.shard.receipt(of: Self.name("news-34", Self.news)) == nil)
        for number in 35...40 {
            #expect(link.shard.receipt(of: Self.name("news-\(number)", Self.news)) != nil)
        }
        #expect(link.shard.figures.feature("hermes_receipts") == 8)
        #expect(link.shard.figures.feature("hermes_receipts_dropped_total") == 34)
        // The rest goes by age, whoever it belongs to.
        link.advance(milliseconds: 24 * 3_600_000)
        #expect(link.shard.figures.feature("hermes_receipts") == 0)
    }

    @Test("a push is its owner's, though another has its identifier")
    func pushes() throws {
        let link = ShardLink(isImmediate: false)
        #expect(Self.isScheduled(push("sale", Self.shop, link)))
        #expect(Self.isScheduled(push("sale", Self.news, link)))
        #expect(push("sale", Self.shop, link) == .alreadyScheduled)
        let answers = Answers<PushStatus?>()
        link.shard.cancelPush(Self.name("sale", Self.news), reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(answers.last??.state == .cancelled)
        #expect(link.shard.pushStatus(Self.name("sale", Self.shop))?.state == .scheduled)
    }

    @Test("one owner leaves room for another's scheduled messages, by number and by bytes")
    func scheduledShares() {
        let few = ShardLink { $0.scheduled = 40 }
        #expect(most { schedule("s-\($0)", Self.shop, few) } == 31)
        #expect(Self.isScheduled(schedule("n", Self.news, few)))
        let small = ShardLink { $0.scheduledBytes = 10_000 }
        _ = most { schedule("s-\($0)", Self.shop, small) }
        let taken = small.shard.features.scheduled.byteCounts.taken(by: Self.shop)
        #expect((7_400..<7_600).contains(taken))
        #expect(most { schedule("n-\($0)", Self.news, small) } > 50)
    }

    @Test("one owner leaves room for another's pushes, and what ends makes room again")
    func pushShares() {
        let link = ShardLink { $0.pushes = 20 }
        #expect(most { push("s-\($0)", Self.shop, link) } == 16)
        #expect(push("s-x", Self.shop, link) == .tooManyScheduled)
        #expect(Self.isScheduled(push("n", Self.news, link)))
        let answers = Answers<PushStatus?>()
        for number in 0..<4 {
            link.shard.cancelPush(Self.name("s-\(number)", Self.shop), reply: answers.reply)
        }
        link.turn()
        link.commitAll()
        #expect(Self.isScheduled(push("s-x", Self.shop, link)))
    }

    @Test("a small limit may be taken by one owner alone", arguments: 1...3)
    func smallLimit(limit: Int) {
        let link = ShardLink { $0.scheduled = limit }
        #expect(most { schedule("s-\($0)", Self.shop, link) } == limit)
    }
}
