import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@Suite("Lost messages in the log")
struct DropReportTests {
    /// Lines about lost messages since the notices before `skipped`.
    private static func drops(_ link: ShardLink, _ skipped: Int = 0) -> [String] {
        link.notices.dropFirst(skipped).compactMap { notice in
            switch notice {
            case .dropping(let client, let reason, let message, let count):
                let topic = message.map { String(decoding: $0.topic, as: UTF8.self) } ?? "?"
                return "\(String(decoding: client, as: UTF8.self)) \(reason.name) \(topic) \(count)"
            case .droppingOfOthers(let count): return "others \(count)"
            default: return nil
            }
        }
    }

    /// Clients with full queues.
    private static func link(_ clients: [String]) throws -> (ShardLink, publisher: Handle) {
        let link = ShardLink {
            $0.queueMessages = 1
            $0.queuePolicy = .dropNewest
        }
        for client in clients {
            link.lose(try link.subscriber(client, to: "\(client)/#", .atLeastOnce))
        }
        let publisher = try link.connect("publisher")
        for client in clients {
            try link.send(publisher, .publish("\(client)/first", "x", qos: .atLeastOnce))
        }
        return (link, publisher)
    }

    @Test("the first of a client is told at once, the others together after a second")
    func counted() throws {
        let (link, publisher) = try Self.link(["a", "b"])
        for topic in ["a/1", "a/2", "a/3", "b/1"] {
            try link.send(publisher, .publish(topic, "x", qos: .atLeastOnce))
        }
        #expect(Self.drops(link) == ["a queue_full a/1 1", "b queue_full b/1 1"])
        link.advance(milliseconds: 999)
        #expect(Self.drops(link).count == 2)
        #expect(link.shard.nextDeadline != nil)
        link.advance(milliseconds: 1)
        #expect(Self.drops(link).dropFirst(2) == ["a queue_full a/2 2"])
        // Both wait for their next lines, and the pause of the one that had two has grown.
        for topic in ["a/4", "b/2"] {
            try link.send(publisher, .publish(topic, "x", qos: .atLeastOnce))
        }
        link.advance(milliseconds: 1_000)
        #expect(Self.drops(link).dropFirst(3) == ["b queue_full b/2 1"])
        link.advance(milliseconds: 999)
        #expect(Self.drops(link).count == 4)
        link.advance(milliseconds: 1)
        #expect(Self.drops(link).dropFirst(4) == ["a queue_full a/4 1"])
        // Nothing is lost any more for two pauses.
        link.advance(milliseconds: 4_000)
        link.advance(milliseconds: 4_000)
        try link.send(publisher, .publish("a/5", "x", qos: .atLeastOnce))
        #expect(Self.drops(link).dropFirst(5) == ["a queue_full a/5 1"])
    }

    @Test("a client that loses messages all the time has a line a minute, with all that it lost")
    func lasting() throws {
        let (link, publisher) = try Self.link(["a"])
        var lost = 0
        func lose(seconds: Int) throws {
            for _ in 0..<seconds {
                try link.send(publisher, .publish("a/x", "x", qos: .atLeastOnce))
                lost += 1
                link.advance(milliseconds: 1_000)
            }
        }
        try lose(seconds: 127)
        #expect(Self.drops(link).count == 7)
        try lose(seconds: 640)
        let lines = Self.drops(link)
        #expect(lines.count == 17)
        #expect(lines.last == "a queue_full a/x 64")
        link.advance(milliseconds: 64_000)
        let told = Self.drops(link).compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        #expect(told.reduce(0, +) == lost)
    }

    @Test("another session at the same place is another client")
    func reused() throws {
        let (link, publisher) = try Self.link(["a"])
        try link.send(publisher, .publish("a/1", "x", qos: .atLeastOnce))
        // The session ends, and one of another client takes its place.
        try link.send(try link.connect("a"), .disconnect)
        link.lose(try link.subscriber("b", to: "b/#", .atLeastOnce))
        for topic in ["b/0", "b/1", "b/2"] {
            try link.send(publisher, .publish(topic, "x", qos: .atLeastOnce))
        }
        link.advance(milliseconds: 1_000)
        #expect(
            Self.drops(link) == [
                "a queue_full a/1 1", "b queue_full b/1 1", "b queue_full b/2 1",
            ])
    }

    @Test("clients beyond the first 256 are counted together, in lines that come ever later")
    func bounded() throws {
        let clients = (0..<300).map { "c\($0)" }
        let (link, publisher) = try Self.link(clients)
        for round in 0..<2 {
            for client in clients {
                try link.send(publisher, .publish("\(client)/\(round)", "x", qos: .atLeastOnce))
            }
        }
        #expect(Self.drops(link).count == 256)
        link.advance(milliseconds: 1_000)
        #expect(Self.drops(link).count == 256 + 256 + 1)
        #expect(Self.drops(link).last == "others 88")
        try link.send(publisher, .publish("c299/2", "x", qos: .atLeastOnce))
        link.advance(milliseconds: 1_999)
        #expect(Self.drops(link).count == 256 + 256 + 1)
        link.advance(milliseconds: 1)
        #expect(Self.drops(link).last == "others 1")
        // All have been silent for two pauses, so the next one is told at once.
        link.advance(milliseconds: 4_000)
        link.advance(milliseconds: 4_000)
        try link.send(publisher, .publish("c299/3", "x", qos: .atLeastOnce))
        #expect(Self.drops(link).last == "c299 queue_full c299/3 1")
    }
}
