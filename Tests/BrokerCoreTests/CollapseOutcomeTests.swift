import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Whoever sends with a collapse key has the one or the other of two messages arrive, and can ask
/// which.
@Suite("What collapse keys leave in queues")
struct CollapseOutcomeTests {
    private func publish(
        _ text: String, _ link: ShardLink, qos: QoS = .atLeastOnce, expiresAtMs: Int64? = nil
    ) {
        var publication = Publication(
            topic: Array("t".utf8), payload: Array(text.utf8), qos: qos, expiresAtMs: expiresAtMs)
        publication.collapseKey = 1
        publication.messageID = Array(text.utf8)
        publication.receiptID = publication.messageID
        link.shard.publish(publication) { _ in }
        link.turn()
    }

    private func receiver(_ id: String, _ link: ShardLink) -> MessageReceipt.Receiver? {
        link.shard.receipt(of: OwnedName(Array(id.utf8), of: .unknown))?.receivers?.first
    }

    private func addOffline(_ link: ShardLink) throws {
        link.lose(try link.subscriber("phone", to: "t", .exactlyOnce))
    }

    @Test("a message of QoS 0 removes nothing for a client that is away")
    func atMostOnce() throws {
        let link = ShardLink()
        try addOffline(link)
        publish("old", link)
        publish("new", link, qos: .atMostOnce)
        #expect(receiver("old", link)?.state == .queued)
        #expect(receiver("new", link)?.reason == "offline")
        // The next one that is queued takes the place of the old one.
        publish("newest", link)
        #expect(receiver("old", link)?.replacedBy == "newest")
        #expect(try link.takeAll(try link.beginConnect("phone")) == ["newest"])
    }

    @Test("nor does it while the old one waits behind a full in-flight window")
    func atMostOnceConnected() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let phone = try link.subscriber("phone", to: "t", .atLeastOnce)
        publish("flying", link)
        publish("old", link)
        publish("new", link, qos: .atMostOnce)
        #expect(try link.takeAll(phone) == ["flying", "new", "old"])
    }

    @Test("a subscription of QoS 0 keeps what waits from the time before")
    func subscriptionOfQoS0() throws {
        let link = ShardLink()
        try addOffline(link)
        publish("old", link)
        // It is not sent while the client subscribes anew.
        link.shard.limits.maxInFlight = 0
        let phone = try link.beginConnect("phone")
        try link.send(phone, .subscribe("t", .atMostOnce), .disconnect)
        link.shard.limits.maxInFlight = 20
        publish("new", link)
        #expect(receiver("old", link)?.state == .queued)
        #expect(receiver("new", link)?.reason == "offline")
        #expect(try link.takeAll(try link.beginConnect("phone")) == ["old"])
    }

    @Test("a message that has expired when its turn comes replaces nothing")
    func expired() throws {
        let link = ShardLink()
        try addOffline(link)
        publish("old", link)
        publish("new", link, expiresAtMs: link.shard.wallClockMs - 1)
        #expect(receiver("new", link)?.state == .expired)
        #expect(try link.takeAll(try link.beginConnect("phone")) == ["old"])
    }

    @Test("the receipt of a replaced message names the one that took its place")
    func names() throws {
        let link = ShardLink({ $0.keepsReceiptEvents = true })
        try addOffline(link)
        for text in ["m1", "m2", "m3"] { publish(text, link) }
        let answers = Answers<[ReceiptEvent]>()
        link.shard.receiptEvents(after: 0, most: 10, reply: answers.reply)
        link.turn()
        #expect(try answers.values.last?.get().map(\.replacedBy) == ["m2", "m3"])
        #expect(receiver("m1", link)?.reason == "replaced")
        #expect(["m1", "m2", "m3"].map { receiver($0, link)?.replacedBy } == ["m2", "m3", nil])
        let details = link.store.records.compactMap { record -> [UInt8]? in
            guard case .fact(let fact) = record, case .detail(let detail) = fact.receipt else {
                return nil
            }
            return detail.text
        }
        #expect(details == ["m2", "m3"].map { Array($0.utf8) })
    }
}
