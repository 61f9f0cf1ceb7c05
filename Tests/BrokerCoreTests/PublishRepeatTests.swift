import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Messages of the admin plane with keys, of which each is published once.
@Suite("Repeats of messages over HTTP")
struct PublishRepeatTests {
    private static func message(
        _ key: Int, digest: UInt128 = 1, isExplicit: Bool = true, qos: QoS = .atLeastOnce
    ) -> Publication {
        Publication(
            topic: Array("t".utf8), payload: Array("\(key)".utf8), qos: qos,
            identity: PublishIdentity(
                key: UInt128(key), digest: digest, messageID: UInt128(100 + key),
                isExplicit: isExplicit))
    }

    private static let first = PublishCounts(matched: 1, queued: 1)

    /// A link with an offline persistent session that subscribes to `t`.
    private func makeLink(_ change: (inout BrokerLimits) -> Void = { _ in }) throws -> ShardLink {
        let link = ShardLink(change, isImmediate: false)
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("t", .atLeastOnce), .disconnect)
        link.commitAll()
        return link
    }

    @Test("the key is stored in one group with its message, and a repeat waits for that group")
    func underWay() throws {
        let link = try makeLink()
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.shard.publish(Self.message(1, digest: 2), reply: answers.reply)
        link.turn()
        let group = try #require(link.store.groups.last)
        let kinds = group.records.map { record in
            switch record {
            case .message: "message"
            case .queued: "queued"
            case .fact(let fact):
                fact.read { (fact) throws(DamagedFact) in try PublishKey(fact) }
                    .map { "key \($0.key) \($0.queued)" } ?? "\(record)"
            default: "\(record)"
            }
        }
        #expect(kinds == ["message", "queued", "key 1 1"])
        #expect(answers.values.isEmpty)
        link.commitAll()
        #expect(
            answers.values == [
                .success(.published(Self.first)), .success(.repeated(Self.first, messageID: 101)),
                .success(.keyReused),
            ])
        link.shard.publish(Self.message(1), reply: answers.reply)
        #expect(answers.values.last == .success(.repeated(Self.first, messageID: 101)))
        #expect(link.store.groups.last?.records == group.records)
    }

    @Test("a message for nobody is stored for its key's sake")
    func nobody() throws {
        let link = ShardLink(isImmediate: false)
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1, qos: .atMostOnce), reply: answers.reply)
        link.turn()
        #expect(answers.values.isEmpty)
        link.commitAll()
        #expect(answers.values == [.success(.published(PublishCounts()))])
    }

    @Test("repeats within a group, and of messages under way, are answered in order")
    func groups() throws {
        let link = try makeLink()
        let (one, many) = (Answers<PublishOutcome>(), Answers<[PublishOutcome]>())
        link.shard.publish(Self.message(1), reply: one.reply)
        link.turn()
        link.shard.publishGroup(
            [Self.message(2), Self.message(1), Self.message(2), Self.message(2, digest: 5)],
            reply: many.reply)
        link.shard.publishGroup([Self.message(1), Self.message(2)], reply: many.reply)
        link.turn()
        #expect(one.values.isEmpty && many.values.isEmpty)
        link.commitAll()
        let repeats: [PublishOutcome] = [
            .repeated(Self.first, messageID: 101), .repeated(Self.first, messageID: 102),
        ]
        #expect(
            many.values.map { try? $0.get() } == [
                [.published(Self.first), repeats[0], repeats[1], .keyReused], repeats,
            ])
        #expect(link.shard.figures.feature("hermes_idempotency_keys") == 2)
    }

    @Test("a refused message leaves no key, so that its repeat is published")
    func refused() throws {
        let link = try makeLink()
        link.store.isAccepting = false
        link.turn()
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.turn()
        #expect(answers.values == [.failure(.storeRefuses)])
        link.store.isAccepting = true
        link.turn()
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(answers.values.last == .success(.published(Self.first)))
    }

    @Test("without keys a message with an identifier is published, one with a key refused")
    func off() throws {
        let link = try makeLink { $0.idempotencyKeys = 0 }
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1, isExplicit: false), reply: answers.reply)
        link.shard.publish(Self.message(1, isExplicit: false), reply: answers.reply)
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(
            answers.values.count == 3
                && answers.values.contains(.success(.keysAreOff))
                && answers.values.count { $0 == .success(.published(Self.first)) } == 2,
            "\(answers.values)")
    }

    @Test("when the shard stops, repeats that wait are told so")
    func stop() throws {
        let link = try makeLink()
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.turn()
        link.shard.abandonReplies()
        #expect(answers.values == [.failure(.stopping), .failure(.stopping)])
    }

    @Test("with nothing stored, keys are kept in memory")
    func inMemory() throws {
        let link = ShardLink(isDurable: false)
        let answers = Answers<PublishOutcome>()
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.shard.publish(Self.message(1), reply: answers.reply)
        link.turn()
        #expect(
            answers.values == [
                .success(.published(PublishCounts())),
                .success(.repeated(PublishCounts(), messageID: 101)),
            ])
    }

    @Test("what is only asked for as a repeat is answered as one, or publishes and keeps nothing")
    func onlyRepeated() throws {
        let link = try makeLink()
        var asked = Self.message(1)
        asked.isOnlyRepeated = true
        let (answers, groups) = (Answers<PublishOutcome>(), Answers<[PublishOutcome]>())
        link.shard.publish(asked, reply: answers.reply)
        let before = link.store.groups.count
        link.turn()
        #expect(answers.values == [.success(.notRepeated)])
        #expect(link.store.groups.count == before)

        link.shard.publishGroup(
            [asked, Self.message(1), asked, Self.message(1)], reply: groups.reply)
        link.turn()
        link.commitAll()
        let repeated = PublishOutcome.repeated(Self.first, messageID: 101)
        #expect(
            groups.values == [
                .success([.notRepeated, .published(Self.first), repeated, repeated])
            ])
        link.shard.publish(asked, reply: answers.reply)
        #expect(answers.values.last == .success(repeated))
    }
}
