import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Identifiers of messages of the admin plane: in the store, in queues and in notices.
@Suite("Identifiers of messages")
struct MessageIDTests {
    private func publish(
        _ id: String, _ link: ShardLink, retain: Bool = false, expiresAtMs: Int64? = nil
    ) {
        var publication = Publication(
            topic: Array("t".utf8), payload: [1, 2], qos: .exactlyOnce, retain: retain,
            expiresAtMs: expiresAtMs)
        publication.messageID = Array(id.utf8)
        let answers = Answers<PublishOutcome>()
        link.shard.publish(publication, reply: answers.reply)
        link.turn()
        #expect(answers.values.count == 1)
    }

    /// A client's queue as "state identifier".
    private func queue(of client: String, _ link: ShardLink) throws -> [String] {
        let answers = Answers<QueuePage?>()
        link.shard.queue(QueueQuery(clientID: client, limit: 100), reply: answers.reply)
        link.turn()
        let answer = try #require(answers.values.first)
        let page = try #require(try answer.get())
        return page.messages.map { "\($0.state.rawValue) \($0.messageID ?? "-")" }
    }

    @Test("it is stored behind its message, and shown from memory and from the store")
    func queues() throws {
        let link = ShardLink({ $0.maxInFlight = 1 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .exactlyOnce))
        publish("a", link)
        let group = try #require(link.store.groups.last)
        guard case .message(let number, _, _, _, _, _) = group.records.first else {
            Issue.record("the group is \(group.records)")
            return
        }
        #expect(group.records.dropFirst().first == .named(number, messageID: Array("a".utf8)))
        publish("b", link)
        let other = try link.connect("other")
        try link.send(other, .publish("t", "mqtt", qos: .atLeastOnce, 1))
        let last = try #require(link.store.groups.last)
        #expect(!last.records.contains { if case .named = $0 { true } else { false } })

        let sent = ["in_flight a", "waiting b", "waiting -"]
        #expect(try queue(of: "phone", link) == sent)
        link.lose(phone)
        #expect(try queue(of: "phone", link) == sent)
        let again = try link.connect("phone", cleanSession: false)
        #expect(try queue(of: "phone", link) == sent)
        try link.send(again, .pubrec(1))
        #expect(try queue(of: "phone", link) == ["released -", "waiting b", "waiting -"])
    }

    @Test("a retained message keeps it for later subscribers")
    func retained() throws {
        let link = ShardLink()
        publish("kept", link, retain: true)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce))
        #expect(try queue(of: "phone", link) == ["in_flight kept"])
    }

    @Test("another member of a group gets the message with it")
    func sharedGroup() throws {
        let link = ShardLink()
        let first = try link.connect("first", cleanSession: false)
        try link.send(first, .subscribe("$share/g/t", .atLeastOnce), .disconnect)
        publish("m", link)
        #expect(try queue(of: "first", link) == ["waiting m"])
        let second = try link.connect("second", cleanSession: false)
        try link.send(second, .subscribe("$share/g/t", .atLeastOnce))
        // A connection with clean session ends the former session.
        _ = try link.connect("first")
        link.turn()
        #expect(try queue(of: "second", link) == ["in_flight m"])
    }

    @Test("the notice of dropped messages names the first one that was lost")
    func notices() throws {
        // What expires in the store alone has no name: it leaves without being read.
        let link = ShardLink(
            {
                $0.queueMessages = 2
                $0.queuePolicy = .dropNewest
            }, isDurable: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce), .disconnect)
        publish("expiring", link, expiresAtMs: link.shard.wallClockMs + 5)
        for id in ["second", "full", "later"] { publish(id, link) }
        link.advance(milliseconds: 10)
        _ = try link.connect("phone", cleanSession: false)
        let dropped = link.notices.compactMap { notice -> String? in
            guard case .dropping(_, let reason, let message?, _) = notice else { return nil }
            return "\(reason.name) \(String(decoding: message.topic, as: UTF8.self)) "
                + String(decoding: message.messageID, as: UTF8.self)
        }
        #expect(dropped == ["queue_full t full", "expired t expiring"])
    }
}
