import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@Suite("Take-overs between two peers")
struct TakeOverTests {
    private static let (here, there, elsewhere): (UInt32, UInt32, UInt32) = (2, 3, 4)

    /// Connects from two addresses in turn: `count` take-overs within as many seconds.
    private static func fight(
        _ link: ShardLink, _ count: Int, cleanSession: Bool = true
    ) throws -> (connected: Handle, origin: UInt32) {
        var connected = try link.connect("tv", cleanSession: cleanSession, origin: here)
        for round in 1...count {
            link.advance(milliseconds: 1_000)
            let former = connected
            connected = try link.connect(
                "tv", cleanSession: cleanSession, origin: round % 2 == 0 ? here : there)
            #expect(link.closed.contains(former), "take-over \(round) is immediate")
        }
        return (connected, count % 2 == 0 ? here : there)
    }

    private static func other(_ origin: UInt32) -> UInt32 { origin == here ? there : here }

    /// Sends CONNECT without waiting for CONNACK.
    private static func come(
        _ link: ShardLink, _ origin: UInt32, cleanSession: Bool = true
    ) throws -> Handle {
        let handle = link.open(origin: origin)
        var connect = PacketContent.Connect(clientID: "tv")
        connect.cleanSession = cleanSession
        try link.send(handle, .connect(connect))
        return handle
    }

    private static func isAccepted(_ link: ShardLink, _ handle: Handle) throws -> Bool {
        try link.take(handle).contains(.connack(.accepted(sessionPresent: false)))
    }

    @Test(
        "five in a minute are immediate, the next ones wait 1, 2, 4 … 30 s",
        arguments: [true, false])
    func delays(cleanSession: Bool) throws {
        let link = ShardLink()
        var (connected, origin) = try Self.fight(link, 5, cleanSession: cleanSession)
        for seconds in [1, 2, 4, 8, 16, 30, 30] as [UInt64] {
            origin = Self.other(origin)
            let newcomer = try Self.come(link, origin, cleanSession: cleanSession)
            link.advance(milliseconds: seconds * 1_000 - 10)
            #expect(try link.take(newcomer) == [], "\(seconds) s")
            // The connected client stays and is served.
            try link.send(connected, .pingreq)
            #expect(try link.take(connected) == [.pingresp])
            link.advance(milliseconds: 100)
            #expect(try link.take(newcomer).count == 1)
            #expect(link.closed.contains(connected))
            connected = newcomer
        }
        #expect(link.shard.counters.takeOversDelayed == 7)
    }

    @Test("a quiet minute forgets the fight")
    func forgotten() throws {
        let link = ShardLink()
        let (_, origin) = try Self.fight(link, 5)
        link.advance(milliseconds: 60_000)
        let newcomer = try Self.come(link, Self.other(origin))
        #expect(try Self.isAccepted(link, newcomer))
        #expect(link.shard.counters.takeOversDelayed == 0)
    }

    @Test("five that need more than a minute are no fight")
    func slow() throws {
        let link = ShardLink()
        var connected = try link.connect("tv", origin: Self.here)
        for round in 1...40 {
            link.advance(milliseconds: 15_100)
            let former = connected
            connected = try link.connect("tv", origin: round % 2 == 0 ? Self.here : Self.there)
            #expect(link.closed.contains(former))
        }
        #expect(link.shard.counters.takeOversDelayed == 0)
    }

    @Test("a client that comes again from its address never waits")
    func sameAddress() throws {
        let link = ShardLink()
        for _ in 0..<20 { _ = try link.connect("tv", origin: Self.here) }
        #expect(link.shard.counters.takeOversDelayed == 0)
    }

    @Test("a phone that moves on from network to network never waits")
    func moving() throws {
        let link = ShardLink()
        for network in 10..<40 as Range<UInt32> { _ = try link.connect("tv", origin: network) }
        #expect(link.shard.counters.takeOversDelayed == 0)
        #expect(link.shard.client("tv") { _ in "" }?.takeOvers == nil)
    }

    @Test("three peers with one identifier are a fight, too")
    func three() throws {
        let link = ShardLink()
        for round in 0..<6 as Range<UInt32> { _ = try link.connect("tv", origin: 2 + round % 3) }
        let newcomer = try Self.come(link, Self.here)
        #expect(try link.take(newcomer) == [])
        // A new address takes over at once.
        let fresh = try Self.come(link, 99)
        #expect(try Self.isAccepted(link, fresh))
    }

    @Test("the waiting client connects at once when the connected one disconnects")
    func released() throws {
        let link = ShardLink()
        let (connected, origin) = try Self.fight(link, 5)
        let newcomer = try Self.come(link, Self.other(origin))
        link.lose(connected)
        link.advance(milliseconds: 130)
        #expect(try Self.isAccepted(link, newcomer))
        try link.send(newcomer, .pingreq)
        #expect(try link.take(newcomer) == [.pingresp])
    }

    @Test("only the newest client waits, and not from the beginning")
    func oneWaits() throws {
        let link = ShardLink()
        let (connected, origin) = try Self.fight(link, 5)
        let first = try Self.come(link, Self.other(origin))
        link.advance(milliseconds: 900)
        let second = try Self.come(link, Self.other(origin))
        #expect(link.closed.contains(first))
        link.advance(milliseconds: 200)
        #expect(try Self.isAccepted(link, second))
        #expect(link.closed.contains(connected))
    }

    @Test("a waiting client that disconnects leaves nothing; its packets count only after CONNACK")
    func goesWaiting() throws {
        let link = ShardLink()
        let (connected, origin) = try Self.fight(link, 5)
        let inUse = link.shard.pool.bytesInUse
        let newcomer = try Self.come(link, Self.other(origin))
        try link.send(newcomer, .subscribe("#", .atMostOnce))
        #expect(link.shard.holdsInput(newcomer) && link.shard.pool.bytesInUse > inUse)
        link.lose(newcomer)
        #expect(link.shard.pool.bytesInUse == inUse)
        link.advance(milliseconds: 5_000)
        try link.send(connected, .pingreq)
        #expect(try link.take(connected) == [.pingresp])

        let again = try Self.come(link, Self.other(origin))
        try link.send(again, .subscribe("#", .atMostOnce))
        link.advance(milliseconds: 5_000)
        #expect(try link.take(again).count == 2)
    }

    @Test("both peers are named, once they fight and as long as they do")
    func named() throws {
        let link = ShardLink()
        let (connected, origin) = try Self.fight(link, 5)
        let newcomer = try Self.come(link, Self.other(origin))
        let report = try #require(
            link.notices.compactMap {
                if case .takeOverDelayed(let report) = $0 { report } else { nil }
            }.last)
        #expect(report.connected == connected && report.waiting == newcomer)
        #expect(report.clientID == Array("tv".utf8) && report.milliseconds == 1_000)
        link.shard.nameTakeOver(report, peers: ["a:1", "b:2"])
        let detail = try #require(
            link.shard.client("tv") { $0 == newcomer ? "b:2" : "a:1" })
        let fight = try #require(detail.takeOvers)
        #expect((fight.count, fight.delayMs) == (5, 1_000))
        #expect(fight.peers == ["a:1", "b:2"] && fight.waiting == "b:2")
        link.advance(milliseconds: 2_000)
        link.advance(milliseconds: 60_000)
        #expect(link.shard.client("tv") { _ in "" }?.takeOvers == nil)
    }

    @Test("take-overs of many other identifiers do not make a fight forgotten")
    func bounded() throws {
        let link = ShardLink()
        let (_, origin) = try Self.fight(link, 5)
        for number in 0..<5_000 {
            _ = try link.connect("other\(number)", origin: Self.here)
            _ = try link.connect("other\(number)", origin: Self.elsewhere)
        }
        let newcomer = try Self.come(link, Self.other(origin))
        #expect(try link.take(newcomer) == [])
    }
}
