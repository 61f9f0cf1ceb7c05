import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// Retained messages never expire, so they have limits of their own.
@Suite("Limits of retained messages")
struct RetainedLimitTests {
    /// Payloads that a new subscriber gets as retained messages, sorted.
    private func retained(_ link: ShardLink) throws -> [String] {
        let reader = try link.connect("reader")
        try link.send(reader, .subscribe("#", .atMostOnce))
        for _ in 1...5 { link.turn() }
        return try link.takePayloads(reader).sorted()
    }

    private func publish(
        _ link: ShardLink, _ client: Handle, _ topic: String, _ payload: String,
        qos: QoS = .atLeastOnce
    ) throws {
        try link.send(client, .publish(topic, payload, qos: qos, 1, retain: true))
    }

    @Test(
        "limits.max_retained: a topic counts once for every eight levels; a further one is delivered only",
        arguments: [1, 8, 9, 16, 17])
    func count(levels: Int) throws {
        let each = (levels + 7) / 8
        let link = ShardLink({ $0.maxRetained = 3 * each })
        let client = try link.connect("client")
        let live = try link.connect("live")
        try link.send(live, .subscribe("#", .atMostOnce))
        _ = try link.take(live)
        func topic(_ number: Int) -> String {
            (["t\(number)"] + Array(repeating: "x", count: levels - 1)).joined(separator: "/")
        }
        for number in 1...3 { try publish(link, client, topic(number), "\(number)") }
        #expect(link.reached(.maxRetained) == 0)
        for qos in QoS.allCases { try publish(link, client, topic(4), "4", qos: qos) }
        #expect(link.reached(.maxRetained) == 3)
        #expect(try link.takePayloads(live) == ["1", "2", "3", "4", "4", "4"])
        #expect(try link.take(client).count == 5, "acknowledged like any other")
        #expect(try retained(link) == ["1", "2", "3"])

        // An existing one is replaced, and a removed one makes room.
        try publish(link, client, topic(2), "2b")
        try publish(link, client, topic(3), "")
        try publish(link, client, topic(4), "4")
        #expect(try retained(link) == ["1", "2b", "4"])
        #expect(link.reached(.maxRetained) == 3)
        #expect(link.shard.figures.retained == 3)
    }

    @Test(
        "limits.retained_bytes: a replacement counts by the difference; the outdated message is removed"
    )
    func bytes() throws {
        let filler = String(repeating: "x", count: 100)
        // Fixed header, length of the topic, the topic, the identifier, the payload.
        let each = 2 + 2 + 1 + 2 + filler.utf8.count
        let link = ShardLink({ $0.retainedBytes = 3 * each })
        let client = try link.connect("client")
        for topic in ["a", "b", "c"] { try publish(link, client, topic, filler) }
        #expect(link.reached(.retainedBytes) == 0)
        #expect(link.shard.figures.retainedBytes == 3 * each)
        try publish(link, client, "d", "y")
        #expect(link.reached(.retainedBytes) == 1)
        try publish(link, client, "b", String(filler.reversed()))
        #expect(link.reached(.retainedBytes) == 1, "no larger than the former one")
        #expect(try retained(link).count == 3)

        try publish(link, client, "c", filler + "1")
        #expect(link.reached(.retainedBytes) == 2)
        #expect(try retained(link).count == 2, "its former value is no longer true")
        #expect(link.store.records.last == .retainedRemoved(topic: Array("c".utf8)))
        try publish(link, client, "a", filler + "1")
        #expect(try retained(link).contains(filler + "1"), "there is room again")
        for topic in ["a", "b"] { try publish(link, client, topic, "") }
        #expect(link.shard.figures.retainedBytes == 0)
    }

    @Test("a message that is not retained is not stored, and no commit is waited for")
    func notStored() throws {
        let link = ShardLink({ $0.maxRetained = 1 }, isImmediate: false)
        let client = try link.connect("client")
        try publish(link, client, "a", "1")
        link.commitAll()
        #expect(try link.take(client) == [.puback(1)])
        let groups = link.store.groups.count
        try publish(link, client, "b", "2")
        #expect(try link.take(client) == [.puback(1)])
        #expect(link.store.groups.count == groups)
        let said = link.notices.contains {
            if case .notRetained(let message, .maxRetained) = $0 {
                message.topic == Array("b".utf8) && message.messageID.isEmpty
            } else {
                false
            }
        }
        #expect(said)
    }

    @Test("a persistent receiver has it stored all the same")
    func receiver() throws {
        let link = ShardLink({ $0.maxRetained = 1 }, isImmediate: false)
        let receiver = try link.subscriber("receiver", to: "#", .atLeastOnce)
        let client = try link.connect("client")
        for topic in ["a", "b"] {
            try publish(link, client, topic, topic)
            #expect(try link.take(client) == [])
            link.commitAll()
            #expect(try link.take(client) == [.puback(1)])
        }
        #expect(try link.takePayloads(receiver) == ["a", "b"])
    }

    @Test("wills and HTTP publishes meet the same limit, values of $SYS do not count")
    func otherWays() throws {
        let link = ShardLink({ $0.maxRetained = 1 })
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("$SYS/#", .atMostOnce))
        link.advance(milliseconds: 20_000)
        let client = try link.connect("client") {
            $0.will = PacketContent.Will(topic: "w", message: [1], retain: true)
        }
        try publish(link, client, "a", "1")
        #expect(link.reached(.maxRetained) == 0)
        link.lose(client)
        #expect(link.reached(.maxRetained) == 1)
        link.shard.publish(
            Publication(
                topic: Array("h".utf8), payload: [1], qos: .atLeastOnce, retain: true)
        ) { _ in }
        #expect(link.reached(.maxRetained) == 2)
        #expect(link.shard.figures.retained == 1)
    }

    @Test("a lowered limit removes nothing; then only removing and replacing work")
    func lowered() throws {
        let link = ShardLink()
        let client = try link.connect("client")
        for topic in ["a", "b", "c", "d"] { try publish(link, client, topic, topic) }
        link.shard.limits.maxRetained = 2
        #expect(try retained(link) == ["a", "b", "c", "d"])
        try publish(link, client, "e", "e")
        try publish(link, client, "a", "A")
        #expect(try retained(link) == ["A", "b", "c", "d"])
        for topic in ["b", "c", "d"] { try publish(link, client, topic, "") }
        try publish(link, client, "e", "e")
        #expect(try retained(link) == ["A", "e"])
    }
}
