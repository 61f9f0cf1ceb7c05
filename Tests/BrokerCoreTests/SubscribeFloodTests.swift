import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

/// The cost of one SUBSCRIBE with very many filters is bounded.
@Suite("Floods of filters")
struct SubscribeFloodTests {
    @Test("of one SUBSCRIBE 10,000 filters are granted, the rest is refused and counted")
    func filters() throws {
        let link = ShardLink()
        let client = try link.connect("c")
        let codes = try subscribe(client, (0..<10_003).map { "f/\($0)" }, link)
        #expect(codes.count == 10_003)
        #expect(codes.prefix(10_000).allSatisfy { $0 == 0 })
        #expect(codes.suffix(3) == [0x80, 0x80, 0x80])
        #expect(link.shard.counters.limits[.subscribeFilters] == 3)
        #expect(try subscribe(client, ["f/10000"], link) == [0], "the next packet counts anew")
    }

    @Test("behind 1,000 refusals nothing is looked at; 8 of a kind are reported")
    func refusals() throws {
        let link = try link("allow everyone subscribe mine/#")
        let client = try link.connect("c")
        let refused = (0..<1_000).map { "others/\($0)" }
        let codes = try subscribe(client, ["mine/a"] + refused + ["mine/b"], link)
        #expect(codes.first == 0)
        #expect(codes.dropFirst().allSatisfy { $0 == 0x80 })
        #expect(codes.count == 1_002)
        #expect(link.shard.counters.accessRefusals[.subscribe] == 1_000)
        #expect(link.shard.counters.limits[.subscribeFilters] == 1)
        let reports = link.notices.count { if case .access = $0 { true } else { false } }
        #expect(reports == 8)
        #expect(try subscribe(client, ["mine/b"], link) == [0])
    }

    @Test("a shared filter that is none is refused, counted, and reported")
    func malformedShared() throws {
        let link = ShardLink()
        let client = try link.connect("c")
        let refused = Array(repeating: "$share/g", count: 1_000)
        let codes = try subscribe(client, refused + ["mine"], link)
        #expect(codes == Array(repeating: 0x80, count: 1_001))
        #expect(link.shard.counters.limits[.sharedFilter] == 1_000)
        #expect(link.shard.counters.limits[.subscribeFilters] == 1)
        let reports = link.notices.count {
            if case .subscriptionRefused(_, .sharedFilter) = $0 { true } else { false }
        }
        #expect(reports == 8)
    }

    @Test("filters that reach further than the rights are granted, and 8 of them reported")
    func narrowed() throws {
        let link = try link("allow everyone subscribe a/b/c")
        let client = try link.connect("c")
        let codes = try subscribe(client, Array(repeating: "a/#", count: 2_000), link)
        #expect(codes == Array(repeating: 0, count: 2_000))
        let reports = link.notices.count { if case .access = $0 { true } else { false } }
        #expect(reports == 8)
    }

    @Test("behind a look at 2,000,000 rules nothing of a packet is looked at")
    func rules() throws {
        let rules = (0..<999).map { "allow everyone subscribe a/\($0)" }
        let link = try link((rules + ["allow everyone subscribe b/+"]).joined(separator: "\n"))
        let client = try link.connect("c")
        let codes = try subscribe(client, (0..<2_010).map { "b/\($0)" }, link)
        #expect(codes.prefix(2_000).allSatisfy { $0 == 0 })
        #expect(codes.dropFirst(2_000) == ArraySlice(repeating: 0x80, count: 10))
        #expect(link.shard.counters.limits[.subscribeFilters] == 10)
        #expect(try subscribe(client, ["b/2009"], link) == [0], "the next packet counts anew")
    }

    @Test("many packets of one turn leave 1,000 notices at most, and every refusal is counted")
    func notices() throws {
        let link = try link("allow everyone subscribe mine/#")
        let client = try link.connect("c")
        let before = link.notices.count
        var bytes: [UInt8] = []
        for _ in 0..<600 {
            bytes.append(contentsOf: try packet(["x/1", "x/2", "x/3"]).encoded())
        }
        link.send(client, bytes)
        #expect(link.shard.counters.accessRefusals[.subscribe] == 1_800)
        #expect(link.notices.count - before == 1_000)
    }

    @Test("an UNSUBSCRIBE of 10,000 filters is carried out, one of more closes its connection")
    func unsubscribe() throws {
        let link = ShardLink()
        let client = try link.connect("c", cleanSession: false)
        #expect(try subscribe(client, ["f/1"], link) == [0])
        let filters = (0..<10_001).map { Array("f/\($0)".utf8) }
        try link.send(client, .unsubscribe(8, Array(filters.dropFirst(2))))
        #expect(try link.take(client) == [.unsuback(8)])
        try link.send(client, .unsubscribe(9, filters))
        #expect(try link.take(client).isEmpty)
        #expect(link.closeReasons.last == .unsubscribeFilters)
        #expect(link.shard.counters.limits[.unsubscribeFilters] == 1)
        #expect(link.shard.figures.subscriptions == 1, "none of it was carried out")
    }

    // MARK: Steps

    private func packet(_ filters: [String]) -> PacketContent {
        .subscribe(7, filters.map { PacketContent.Request($0, .atMostOnce) })
    }

    private func subscribe(
        _ client: Handle, _ filters: [String], _ link: ShardLink
    ) throws -> [UInt8] {
        try link.send(client, packet(filters))
        guard case .suback(7, let codes)? = try link.take(client).first else { return [] }
        return codes
    }
}
