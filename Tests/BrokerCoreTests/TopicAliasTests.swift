import MQTTCodec
import Structures
import Testing

@testable import BrokerCore

@Suite("Topic aliases of a client")
struct TopicAliasTests {
    private let pool = BytePool()

    private func set(
        _ aliases: inout TopicAliases, _ alias: UInt16, _ topic: String
    ) throws -> TopicAliases.Answer {
        let alias = try #require(TopicAlias(alias))
        return Array(topic.utf8).withUnsafeBytes { aliases.set(alias, $0, pool: pool) }
    }

    private func topic(_ aliases: TopicAliases, _ alias: UInt16) throws -> String? {
        let alias = try #require(TopicAlias(alias))
        return aliases.topic(of: alias).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("each of 1 to 16 stands for its latest topic, and no other number is taken")
    func range() throws {
        var aliases = TopicAliases()
        for alias in 1...UInt16(16) { #expect(try set(&aliases, alias, "a/\(alias)") == .taken) }
        #expect(try set(&aliases, 3, "other") == .taken)
        #expect(try topic(aliases, 3) == "other")
        #expect(try topic(aliases, 16) == "a/16")
        #expect(try set(&aliases, 17, "a") == .aboveMaximum)
        #expect(try topic(aliases, 17) == nil)
        aliases.removeAll(in: pool)
        #expect(try topic(aliases, 16) == nil)
        #expect(pool.bytesInUse == 0)
    }

    @Test("their topics together have at most 16 KiB; what is replaced makes room")
    func bytes() throws {
        var aliases = TopicAliases()
        let half = String(repeating: "a", count: TopicAliases.mostBytes / 2)
        #expect(try set(&aliases, 1, half) == .taken)
        #expect(try set(&aliases, 2, half) == .taken)
        #expect(try set(&aliases, 3, "x") == .tooLong)
        #expect(try topic(aliases, 3) == nil)
        #expect(try set(&aliases, 2, "short") == .taken)
        #expect(try set(&aliases, 3, "x") == .taken)
        aliases.removeAll(in: pool)
        #expect(pool.bytesInUse == 0)
    }
}
