import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Testing

/// Messages that the admin plane publishes in groups.
@Suite("Groups of messages over HTTP")
struct PublishGroupTests {
    private static func messages(
        _ numbers: ClosedRange<Int>, topic: String = "t", qos: QoS = .atLeastOnce
    ) -> [Publication] {
        numbers.map {
            Publication(topic: Array(topic.utf8), payload: Array("\($0)".utf8), qos: qos)
        }
    }

    /// A link with an offline persistent session that subscribes to `t`.
    private func makeLink(_ change: (inout BrokerLimits) -> Void = { _ in }) throws -> ShardLink {
        let link = ShardLink(change, isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce), .disconnect)
        link.commitAll()
        return link
    }

    private func payloads(_ packets: [PacketContent]) -> [String] {
        packets.compactMap {
            if case .publish(let publish) = $0 {
                String(decoding: publish.payload, as: UTF8.self)
            } else {
                nil
            }
        }
    }

    @Test("a group is one commit, and is answered in order when it is stored")
    func oneCommit() throws {
        let link = try makeLink()
        let before = link.store.groups.count
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup(
            Self.messages(1...50) + Self.messages(51...51, topic: "nobody"), reply: answers.reply)
        link.turn()
        #expect(link.store.groups.count == before + 1)
        #expect(answers.values.isEmpty)
        link.commitAll()
        let stored = PublishOutcome.published(PublishCounts(matched: 1, queued: 1))
        #expect(
            answers.values == [
                .success(Array(repeating: stored, count: 50) + [.published(PublishCounts())])
            ])
    }

    @Test("a group beyond a turn's share takes several turns, and others go on between them")
    func slices() throws {
        let link = try makeLink { $0.queueMessages = 10_000 }
        let (sender, reader) = (try link.connect("sender"), try link.connect("reader"))
        try link.send(reader, .subscribe("chat", .atMostOnce))
        _ = try link.take(reader)
        let before = link.store.groups.count
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup(Self.messages(1...3_000), reply: answers.reply)
        link.shard.publishGroup(Self.messages(3_001...3_002), reply: answers.reply)
        var turns = 0
        while link.shard.nextDeadline == link.shard.now {
            link.receive(sender, try PacketContent.publish("chat", "\(turns)").encoded())
            link.turnOnce()
            #expect(payloads(try link.take(reader)) == ["\(turns)"])
            turns += 1
        }
        #expect(turns > 10 && turns < 40)
        // The last slice of the first group shares its turn with the second group.
        #expect(link.store.groups.count == before + turns + 1)
        // Commits may complete in any order.
        let pending = link.store.pending
        for ticket in pending.dropFirst().reversed() { link.store.complete(ticket) }
        link.turn()
        #expect(answers.values.map { try? $0.get().count } == [2])
        link.commitAll()
        #expect(answers.values.map { try? $0.get().count } == [2, 3_000])
        let phone = try link.beginConnect("phone")
        link.commitAll()
        var received: [String] = []
        while received.count < 3_002 {
            let packets = try link.take(phone)
            guard !packets.isEmpty else { break }
            received += payloads(packets)
            for packet in packets {
                if case .publish(let publish) = packet,
                    case .atLeastOnce(let identifier, _) = publish.delivery
                {
                    try link.send(phone, .puback(identifier))
                }
            }
            link.commitAll()
        }
        let isInOrder = received == (1...3_002).map { "\($0)" }
        #expect(isInOrder, "\(received.count) messages")
    }

    @Test("while the store refuses, messages that it would hold are refused, each for itself")
    func refusal() throws {
        let link = try makeLink()
        link.store.isAccepting = false
        link.turn()
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup(
            Self.messages(1...2) + Self.messages(3...3, qos: .atMostOnce), reply: answers.reply)
        link.turn()
        let lost = PublishCounts(matched: 1, dropped: 1)
        #expect(
            answers.values == [
                .success([
                    .refused(.storeRefuses), .refused(.storeRefuses), .published(lost),
                ])
            ])
    }

    @Test("while the disk is behind a group waits; after 5 s its messages are refused")
    func backlog() throws {
        let link = try makeLink { $0.storeBacklogBytes = 10_000 }
        let flood = Publication(
            topic: Array("r".utf8), payload: [UInt8](repeating: 1, count: 12_000),
            qos: .atLeastOnce, retain: true)
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup([flood], reply: answers.reply)
        link.turn()
        link.shard.publishGroup(Self.messages(1...2), reply: answers.reply)
        link.turn()
        #expect(answers.values.isEmpty)
        #expect(link.shard.nextDeadline != link.shard.now, "it does not turn in vain")
        link.commitAll()
        link.turn()
        link.commitAll()
        #expect(answers.values.map { try? $0.get().count } == [1, 2])

        let later = Answers<[PublishOutcome]>()
        link.shard.publishGroup([flood], reply: later.reply)
        link.turn()
        link.shard.publishGroup(Self.messages(3...3), reply: later.reply)
        link.advance(milliseconds: 4_999)
        #expect(later.values.isEmpty)
        link.advance(milliseconds: 1)
        #expect(later.values == [.success([.refused(.storeRefuses)])])
    }

    @Test("the end of the shard answers every group that is not stored")
    func stopping() throws {
        let link = try makeLink()
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup(Self.messages(1...2), reply: answers.reply)
        link.turn()
        link.shard.publishGroup(Self.messages(3...3), reply: answers.reply)
        link.shard.abandonReplies()
        #expect(answers.values == [.failure(.stopping), .failure(.stopping)])
    }

    @Test("an empty group is answered at once")
    func empty() throws {
        let link = try makeLink()
        let answers = Answers<[PublishOutcome]>()
        link.shard.publishGroup([], reply: answers.reply)
        link.turn()
        #expect(answers.values == [.success([])])
    }
}
