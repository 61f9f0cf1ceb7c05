import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Receipts of messages of the admin plane, from their publication to the ends of their receivers.
@Suite("Receipts")
struct ReceiptFlowTests {
    private static func message(
        _ id: String, topic: String = "t", qos: QoS = .exactlyOnce, expiresAtMs: Int64? = nil
    ) -> Publication {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array(id.utf8), qos: qos, expiresAtMs: expiresAtMs)
        publication.receiptID = Array(id.utf8)
        return publication
    }

    private func publish(_ publication: Publication, _ link: ShardLink) {
        let answers = Answers<PublishOutcome>()
        link.shard.publish(publication, reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(answers.values.count == 1)
    }

    /// Each receiver of a message as "client state reason".
    private func receivers(_ id: String, _ link: ShardLink) -> [String] {
        receipt(id, link)?.receivers?.map { receiver in
            "\(receiver.clientID) \(receiver.state)"
                + (receiver.reason.map { " \($0)" } ?? "")
                + (receiver.atMs == nil ? "" : " at")
        } ?? ["unknown"]
    }

    private func receipt(_ id: String, _ link: ShardLink) -> MessageReceipt? {
        link.shard.receipt(of: OwnedName(Array(id.utf8), of: .unknown))
    }

    private func find(_ client: String, _ link: ShardLink) -> UInt32? {
        Array(client.utf8).withUnsafeBytes { link.shard.sessions.find($0) }
    }

    /// A client that subscribes to `t` and is gone again.
    private func addOffline(
        _ client: String, _ link: ShardLink, _ qos: QoS = .atLeastOnce, filter: String = "t"
    ) throws {
        let phone = try link.connect(client, cleanSession: false)
        try link.send(phone, .subscribe(filter, qos), .disconnect)
        link.commitAll()
    }

    @Test("the receipt is in one group with its message, and known after a restart")
    func restart() throws {
        let link = ShardLink(isImmediate: false)
        try addOffline("phone", link)
        publish(Self.message("m"), link)
        let group = try #require(link.store.groups.last)
        let kinds = group.records.map { record in
            switch record {
            case .message: "message"
            case .queued: "queued"
            case .fact(let fact):
                switch fact.receipt {
                case .receipt(let receipt): "receipt \(receipt.number)"
                case .receiver(let receiver): "receiver \(receiver.position)"
                default: "\(record)"
                }
            default: "\(record)"
            }
        }
        #expect(kinds == ["receipt 1", "message", "queued", "receiver 0"])
        #expect(receivers("m", link) == ["phone queued"])
        #expect(receipt("n", link) == nil)
    }

    @Test("QoS 1 and 2: queued, sent, acknowledged with PUBACK or PUBREC", arguments: [1, 2])
    func acknowledged(qos: UInt8) throws {
        let qos = try #require(QoS(rawValue: qos))
        let link = ShardLink()
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", qos))
        link.store.isImmediate = false
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message("m"), reply: answers.reply)
        link.turn()
        #expect(receivers("m", link) == ["phone queued"])
        link.commitAll()
        #expect(receivers("m", link) == ["phone sent"])
        try link.send(phone, qos == .exactlyOnce ? .pubrec(1) : .puback(1))
        #expect(receivers("m", link) == ["phone acknowledged at"])
        let ends = link.store.groups.flatMap(\.records).filter { record in
            if case .fact(let fact) = record, case .end = fact.receipt { true } else { false }
        }
        #expect(ends.count == 1)
        link.commitAll()
        if qos == .exactlyOnce { try link.send(phone, .pubcomp(1)) }
        #expect(receivers("m", link) == ["phone acknowledged at"])
        let session = find("phone", link)
        let follows = session.map { link.shard.sessions[$0].follows }
        #expect(follows == false)
    }

    @Test("QoS 0 is sent or dropped at once")
    func atMostOnce() throws {
        let link = ShardLink()
        let phone = try link.connect("phone")
        try link.send(phone, .subscribe("t", .atMostOnce))
        try addOffline("gone", link, .atMostOnce)
        publish(Self.message("m"), link)
        #expect(receivers("m", link).sorted() == ["gone dropped offline at", "phone sent at"])
        let counts = try #require(receipt("m", link)).counts
        #expect((counts.receivers, counts.sent, counts.dropped, counts.pending) == (2, 1, 1, 0))
    }

    @Test("expired, dropped by a full queue, by an operator, and with its session")
    func drops() throws {
        let link = ShardLink { $0.queueMessages = 2 }
        try addOffline("phone", link)
        publish(Self.message("full"), link)
        publish(Self.message("expiring", expiresAtMs: link.shard.wallClockMs + 5), link)
        publish(Self.message("operator"), link)
        #expect(receivers("full", link) == ["phone dropped queue_full at"])
        link.advance(milliseconds: 10)
        let phone = try link.connect("phone", cleanSession: false)
        link.store.completeAll()
        link.turn()
        #expect(receivers("expiring", link) == ["phone expired at"])
        #expect(receivers("operator", link) == ["phone sent"])
        try link.send(phone, .disconnect)
        publish(Self.message("waiting"), link)
        let answers = Answers<QueueDrop?>()
        link.shard.dropQueue(of: "phone", below: nil, reply: answers.reply)
        link.turn()
        #expect(receivers("waiting", link) == ["phone dropped operator at"])
        // A connection with clean session ends the former session.
        _ = try link.connect("phone")
        link.turn()
        #expect(receivers("operator", link) == ["phone dropped session_ended at"])
    }

    @Test("a message that another member of a group takes over is followed there")
    func sharedGroup() throws {
        let link = ShardLink()
        let one = try link.connect("one", cleanSession: false)
        try link.send(one, .subscribe("$share/g/t", .atLeastOnce))
        publish(Self.message("m"), link)
        #expect(receivers("m", link) == ["one sent"])
        try addOffline("two", link, filter: "$share/g/t")
        try link.send(one, .unsubscribe(5, [Array("$share/g/t".utf8)]))
        #expect(receivers("m", link) == ["one sent"], "what was sent stays with its receiver")
        try link.send(one, .disconnect)
        _ = try link.connect("one")
        for _ in 1...5 { link.turn() }
        #expect(receivers("m", link) == ["two queued"])
    }

    @Test("positions that move in memory keep their receipts")
    func moved() throws {
        let link = ShardLink(isDurable: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce))
        publish(Self.message("first"), link)
        let session = try #require(find("phone", link))
        let number = link.shard.sessions[session].number
        link.shard.features.receipts.move(number, from: 0, to: 70)
        let at = link.shard.features.receipts.find(session: number, position: 70)
        let before = link.shard.features.receipts.find(session: number, position: 0)
        #expect(at != nil && before == nil)
    }

    @Test("a fan-out to more than 64 receivers is counted, not listed")
    func largeFanOut() throws {
        let link = ShardLink()
        for number in 1...65 { try addOffline("phone-\(number)", link) }
        publish(Self.message("m"), link)
        let receipt = try #require(self.receipt("m", link))
        #expect(receipt.receivers == nil)
        #expect((receipt.counts.receivers, receipt.counts.pending) == (65, 65))
    }

    @Test("above the limit the oldest go, also while their receivers are open")
    func limit() throws {
        let link = ShardLink { $0.receipts = 4 }
        try addOffline("phone", link)
        for id in ["a", "b", "c"] { publish(Self.message(id), link) }
        link.turn()
        #expect(receivers("a", link) == ["unknown"])
        #expect(receivers("c", link) == ["phone queued"])
        #expect(link.shard.figures.feature("hermes_receipts") == 4)
        #expect(link.shard.figures.feature("hermes_receipts_dropped_total") == 2)
        let phone = try link.connect("phone", cleanSession: false)
        link.turn()
        for identifier in 1...3 as ClosedRange<UInt16> {
            try link.send(phone, .puback(try #require(PacketIdentifier(identifier))))
        }
        #expect(receivers("c", link) == ["phone acknowledged at"])
        link.shard.limits.receipts = 0
        link.turn()
        #expect(receivers("c", link) == ["unknown"])
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message("d"), reply: answers.reply)
        #expect(answers.values == [.success(.receiptsAreOff)])
    }

    @Test("receipts are kept for 24 hours")
    func lifetime() throws {
        let link = ShardLink()
        publish(Self.message("m"), link)
        link.advance(milliseconds: 24 * 3_600_000 - 1)
        #expect(receivers("m", link) == [])
        link.advance(milliseconds: 1)
        #expect(receivers("m", link) == ["unknown"])
        #expect(link.shard.figures.feature("hermes_receipts_dropped_total") == 0)
    }

    @Test("old receipts go in a turn of others, when nothing has stirred the features")
    func lifetimeInQuiet() throws {
        let link = ShardLink()
        publish(Self.message("m"), link)
        // Whoever asks for the deadline leaves the features at rest.
        while let deadline = link.shard.nextDeadline, deadline <= link.shard.now { link.turn() }
        #expect(link.shard.figures.feature("hermes_receipts") == 1)
        link.advance(milliseconds: 24 * 3_600_000)
        #expect(link.shard.figures.feature("hermes_receipts") == 0)
    }

    @Test("of two messages with one identifier, the last is found")
    func sameIdentifier() throws {
        let link = ShardLink()
        publish(Self.message("m", topic: "one"), link)
        publish(Self.message("m", topic: "two"), link)
        #expect(receipt("m", link)?.topic == "two")
        link.shard.limits.receipts = 1
        link.turn()
        #expect(receipt("m", link)?.topic == "two")
    }

    @Test("events are told in order once they are stored, and again until they are taken")
    func events() throws {
        let link = ShardLink({ $0.keepsReceiptEvents = true }, isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce))
        link.commitAll()
        publish(Self.message("a"), link)
        publish(Self.message("b"), link)
        let answers = Answers<[ReceiptEvent]>()
        link.shard.receiptEvents(after: 0, most: 10, reply: answers.reply)
        try link.send(phone, .puback(1), .puback(2))
        #expect(answers.values.isEmpty)
        link.commitAll()
        let events = try #require(try answers.values.last?.get())
        #expect(events.map(\.messageID) == ["a", "b"])
        #expect(events.map(\.number) == [1, 2])
        #expect(events.allSatisfy { $0.clientID == "phone" && $0.outcome == .acknowledged })
        link.shard.receiptEvents(after: 0, most: 1, reply: answers.reply)
        link.turn()
        #expect(try answers.values.last?.get().map(\.messageID) == ["a"])
        link.shard.takeReceiptEvents(through: 1)
        link.shard.receiptEvents(after: 0, most: 10, reply: answers.reply)
        link.turn()
        #expect(try answers.values.last?.get().map(\.number) == [2])
        link.shard.receiptEvents(after: 2, most: 10, reply: answers.reply)
        link.advance(milliseconds: 9_999)
        #expect(answers.values.count == 3)
        link.advance(milliseconds: 1)
        #expect(try answers.values.last?.get() == [])
        link.shard.limits.receipts = 0
        link.turn()
        #expect(link.shard.figures.feature("hermes_receipt_events_dropped_total") == 1)
        #expect(link.shard.figures.feature("hermes_receipt_events") == 0)
    }
}
