import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Synchronization
import Testing

@Suite("Bans of clients and users")
struct BanTests {
    private static func ban(
        _ id: UInt32, _ target: Ban.Target, expires: Int64? = nil
    ) -> Ban {
        Ban(id: Ban.ID(id), target: target, created: 0, expires: expires, reason: "", author: "")
    }

    private static func client(_ name: String) -> Ban.Target { .client(Array(name.utf8)) }
    private static func user(_ name: String) -> Ban.Target { .user(Array(name.utf8)) }

    /// Puts bans into force; returns how many connections they closed, after as many turns as needed.
    private static func set(
        _ link: ShardLink, _ bans: [Ban], generation: UInt64 = 1,
        address: (Handle) -> Ban? = { _ in nil }
    ) throws -> Int {
        let counted = Counted()
        link.shard.setBans(BanTable(bans, generation: generation)) { result in
            counted.value.withLock { $0 = try? result.get() }
        }
        for _ in 0..<100 where counted.value.withLock({ $0 }) == nil {
            link.shard.continueBans(address: address)
            link.turn()
        }
        return try #require(counted.value.withLock { $0 })
    }

    private final class Counted: Sendable {
        let value = Mutex<Int?>(nil)
    }

    private static func come(
        _ link: ShardLink, _ identifier: String, user: String? = nil
    ) throws -> [PacketContent] {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: identifier)
        connect.userName = user.map { Array($0.utf8) }
        try link.send(handle, .connect(connect))
        return try link.take(handle)
    }

    @Test("a banned client is closed, its session stays, and it is refused with code 5")
    func client() throws {
        let link = ShardLink()
        let phone = try link.connect("phone", cleanSession: false)
        let other = try link.connect("other")
        #expect(try Self.set(link, [Self.ban(7, Self.client("phone"))]) == 1)
        #expect(link.closed.contains(phone) && !link.closed.contains(other))
        #expect(link.closeReasons.contains(.closedByBan(Ban.ID(7))))
        #expect(try Self.come(link, "phone") == [.connack(.refused(.notAuthorized))])
        #expect(link.shard.counters.bansMet[.client] == 1)
        #expect(link.shard.counters.closed[.banned] == 2)
        #expect(try Self.set(link, [], generation: 2) == 0)
        #expect(link.shard.banTable == nil)
        #expect(try Self.come(link, "phone") == [.connack(.accepted(sessionPresent: false))])
    }

    @Test("all connections of a banned user close, and a ban ends at its second")
    func user() throws {
        let link = ShardLink()
        let handles = try ["a", "b"].map { name in
            try link.connect(name) { $0.userName = Array("ann".utf8) }
        }
        _ = try link.connect("c") { $0.userName = Array("bob".utf8) }
        let end = link.shard.wallClockMs / 1_000 + 10
        #expect(try Self.set(link, [Self.ban(1, Self.user("ann"), expires: end)]) == 2)
        #expect(handles.allSatisfy { link.closed.contains($0) })
        #expect(try Self.come(link, "d", user: "ann") == [.connack(.refused(.notAuthorized))])
        link.advance(milliseconds: 10_000)
        #expect(
            try Self.come(link, "d", user: "ann") == [.connack(.accepted(sessionPresent: false))])
    }

    @Test("addresses are the caller's to know, but for a proxy's that has not named its client")
    func address() throws {
        let link = ShardLink()
        let here = try link.connect("here", origin: 2)
        let there = link.open(origin: 0)
        let ban = Self.ban(1, Self.client("nobody"))
        #expect(try Self.set(link, [ban], address: { _ in ban }) == 1)
        #expect(link.closed.contains(here) && !link.closed.contains(there))
    }

    @Test("very many connections are searched in slices, and an older table changes nothing")
    func slices() throws {
        let link = ShardLink()
        for number in 0..<2_500 {
            _ = try link.connect("c\(number)") { $0.userName = Array("ann".utf8) }
        }
        #expect(
            try Self.set(link, [Self.ban(1, Self.user("ann"))], generation: 5) == 2_500)
        #expect(try Self.set(link, [], generation: 4) == 0)
        #expect(try Self.come(link, "x", user: "ann") == [.connack(.refused(.notAuthorized))])
    }
}
