import Authorization
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Many access rules make questions dear: what asks them is divided over turns, and others are answered
/// between.
@Suite("The work of access rules")
struct RuleWorkTests {
    private static func lines(_ count: Int, _ line: (Int) -> String) -> String {
        (0..<count).map(line).joined(separator: "\n") + "\n"
    }

    /// Takes turns until no work is left, with a PINGREQ in each; returns their number.
    private func turns(_ link: ShardLink, _ quiet: Handle) throws -> Int {
        var turns = 0
        repeat {
            link.receive(quiet, try PacketContent.pingreq.encoded())
            link.turnOnce()
            turns += 1
            #expect(try link.take(quiet) == [.pingresp], "turn \(turns)")
        } while turns < 10_000
            && (link.shard.hasTurnWaiters || link.shard.nextDeadline == link.shard.now)
        return turns
    }

    /// Units that a turn has left after a client's packets.
    private func unitsOf(_ link: ShardLink, _ handle: Handle, _ bytes: [UInt8]) -> Int {
        let before = link.shard.context.budget.unitsLeft
        link.receive(handle, bytes)
        return before - link.shard.context.budget.unitsLeft
    }

    @Test("a permission to publish costs what it looks at, and a repeated topic nothing")
    func publishing() throws {
        let text = Self.lines(5_000) { "deny everyone publish a/\($0)" } + "allow everyone both #"
        let link = try link(text)
        let publisher = try link.connect("publisher")
        let first = unitsOf(link, publisher, try PacketContent.publish("b", "x").encoded())
        let second = unitsOf(link, publisher, try PacketContent.publish("b", "x").encoded())
        #expect(first > 5_000 && second < 100)
    }

    @Test("a client's ever new topics end its share, and leave the rest to the next turn")
    func newTopics() throws {
        let text = Self.lines(5_000) { "deny everyone publish a/\($0)" } + "allow everyone both #"
        let link = try link(text)
        let (publisher, quiet) = (try link.connect("publisher"), try link.connect("quiet"))
        let reader = try link.subscriber("reader", to: "b/#", .atMostOnce, cleanSession: true)
        let burst = try (0..<100).flatMap {
            try PacketContent.publish("b/\($0)", "\($0)").encoded()
        }
        link.receive(publisher, burst)
        #expect(link.unreadCount(of: publisher) > burst.count / 2)
        // 100 topics of 5,000 steps, of which half a turn's units are for one client.
        #expect(try turns(link, quiet) >= 8)
        #expect(try payloads(link.take(reader)) == (0..<100).map { "\($0)" })
    }

    @Test("receivers with many rules of their own are asked in slices, and some may not read")
    func receivers() throws {
        let users = 40
        let text =
            (0..<users).map { user in
                Self.lines(2_000) { "deny user u\(user) subscribe a/\($0)" }
            }.joined() + Self.lines(users / 2) { "deny user u\(2 * $0) subscribe t/+" }
            + "allow everyone both #"
        let link = try link(text)
        let readers = try (0..<users).map { user in
            let handle = try link.connect("reader-\(user)", user: "u\(user)")
            try link.send(handle, .subscribe("t/#", .atLeastOnce))
            _ = try link.take(handle)
            return handle
        }
        let (publisher, quiet) = (try link.connect("publisher"), try link.connect("quiet"))
        let before = try #require(link.refusals("deliver"))
        let burst = try (0..<3).flatMap { number in
            try PacketContent.publish(
                "t/\(number)", "\(number)", qos: .atLeastOnce,
                try #require(PacketIdentifier(UInt16(number + 1)))
            ).encoded()
        }
        link.receive(publisher, burst)
        // Three topics of 40 times 2,000 steps.
        #expect(try turns(link, quiet) >= 6)
        for (user, reader) in readers.enumerated() {
            let expected = user.isMultiple(of: 2) ? [] : ["0", "1", "2"]
            #expect(try payloads(link.take(reader)) == expected, "user \(user)")
        }
        #expect(link.refusals("deliver") == before + 3 * UInt64(users / 2))
        #expect(try link.take(publisher).count == 3)
    }

    @Test("rules that change between slices hold for all receivers of the message")
    func changedRules() throws {
        let own = (0..<40).map { user in
            Self.lines(2_000) { "deny user u\(user) subscribe a/\($0)" }
        }.joined()
        let link = try link(own + "allow everyone both #")
        let readers = try (0..<40).map { user in
            let handle = try link.connect("reader-\(user)", user: "u\(user)")
            try link.send(handle, .subscribe("t/#", .atMostOnce))
            _ = try link.take(handle)
            return handle
        }
        let publisher = try link.connect("publisher")
        link.receive(publisher, try PacketContent.publish("t/1", "x").encoded())
        link.turnOnce()
        let isWaiting = link.shard.awaitsTurn(publisher)
        #expect(isWaiting)
        link.shard.setAccess(try rules(own + "deny user u0 subscribe #\nallow everyone both #"))
        link.turn()
        for (user, reader) in readers.enumerated() {
            #expect(try payloads(link.take(reader)) == (user == 0 ? [] : ["x"]), "user \(user)")
        }
    }

    @Test("a walk over retained messages takes as many turns as its rules need")
    func walks() throws {
        let text =
            Self.lines(1_000) { "deny everyone subscribe a/\($0)" }
            + "deny everyone subscribe r/7\nallow everyone both #"
        let link = try link(text)
        let publisher = try link.connect("publisher")
        for number in 0..<300 {
            try link.send(publisher, .publish("r/\(number)", "\(number)", retain: true))
        }
        let (reader, quiet) = (try link.connect("reader"), try link.connect("quiet"))
        link.receive(reader, try PacketContent.subscribe("r/#", .atMostOnce).encoded())
        // 300 messages of 1,000 steps; a turn's walks may take 2,048 visits, of 16 steps each.
        #expect(try turns(link, quiet) >= 8)
        let received = try payloads(link.take(reader))
        #expect(Set(received) == Set((0..<300).filter { $0 != 7 }.map { "\($0)" }))
        #expect(received.count == 299)
    }

    @Test("a queue is checked again under new rules in slices", arguments: [true, false])
    func queues(isDurable: Bool) throws {
        let link = ShardLink(access: try rules("allow everyone both #"), isDurable: isDurable)
        let anna = try link.connect("anna", cleanSession: false)
        try link.send(anna, .subscribe("q/#", .atLeastOnce))
        link.lose(anna)
        let publisher = try link.connect("publisher")
        for number in 1...200 {
            let topic = number > 195 ? "q/open" : "q/closed/\(number)"
            try link.send(
                publisher,
                .publish(
                    topic, "\(number)", qos: .atLeastOnce,
                    try #require(PacketIdentifier(UInt16(number)))))
        }
        link.shard.setAccess(
            try rules(
                Self.lines(2_000) { "deny everyone subscribe a/\($0)" }
                    + "deny everyone subscribe q/closed/#\nallow everyone both #"))
        let quiet = try link.connect("quiet")
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: "anna")
        connect.cleanSession = false
        link.receive(handle, try PacketContent.connect(connect).encoded())
        // 200 questions of 2,000 steps, at most five times 4,096 a turn for each part of the queue.
        #expect(try turns(link, quiet) >= 5)
        #expect(try payloads(link.take(handle)) == (196...200).map { "\($0)" })
        #expect(link.refusals("deliver") == 195)
    }

    @Test("a login's hundred filters are charged for each receiver")
    func logins() throws {
        let link = ShardLink(verifiesPasswords: true)
        let allowance = try TopicAllowance(
            publish: nil, subscribe: (0..<99).map { "a/\($0)" } + ["t/#"])
        link.answer = { _ in
            .admitted(Login(userName: Array("anna".utf8), allowance: allowance, endsAtMs: nil))
        }
        let readers = try (0..<400).map { number in
            let handle = try link.connect("reader-\(number)", user: "anna")
            try link.send(handle, .subscribe("t/#", .atMostOnce))
            _ = try link.take(handle)
            return handle
        }
        let (publisher, quiet) = (try link.connect("publisher"), try link.connect("quiet"))
        let burst = try (0..<10).flatMap {
            try PacketContent.publish("t/\($0)", "\($0)").encoded()
        }
        link.receive(publisher, burst)
        // Ten topics of 400 times 100 steps.
        #expect(try turns(link, quiet) >= 6)
        for reader in readers {
            #expect(try payloads(link.take(reader)) == (0..<10).map { "\($0)" })
        }
    }
}
