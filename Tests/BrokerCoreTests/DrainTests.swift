import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@Suite("Draining the broker")
struct DrainTests {
    /// Begins a turn so much later, as the loop does, and runs it. True when the drain is done.
    @discardableResult
    private static func tick(_ link: ShardLink, milliseconds: UInt64) -> Bool {
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: milliseconds),
            wallClockMs: link.shard.wallClockMs + Int64(milliseconds))
        let isDone = link.shard.continueDrain()
        link.turn()
        return isDone
    }

    private static func link(clients: Int, cleanSession: Bool = true) throws -> ShardLink {
        let link = ShardLink()
        for number in 0..<clients {
            _ = try link.connect("c\(number)", cleanSession: cleanSession)
        }
        return link
    }

    @Test("connections end evenly, one at a time, and the end is told once")
    func evenly() throws {
        let link = try Self.link(clients: 200)
        link.shard.startDrain(perSecond: 50)
        #expect(
            link.shard.drainStatus
                == DrainStatus(
                    isDrained: false, connections: 200, closed: 0, perSecond: 50,
                    startedAtMs: link.shard.wallClockMs))
        #expect(link.shard.drainStatus.secondsLeft == 4)
        for millisecond in 1...4_000 {
            let isDone = Self.tick(link, milliseconds: 1)
            #expect(!isDone)
            let expected = millisecond / 20
            guard link.closed.count == expected else {
                Issue.record("\(link.closed.count), not \(expected), after \(millisecond) ms")
                return
            }
        }
        #expect(link.closeReasons.allSatisfy { $0 == .draining })
        #expect(Self.tick(link, milliseconds: 1))
        #expect(!Self.tick(link, milliseconds: 1))
        #expect(link.shard.drainStatus.state == .drained && link.shard.drainStatus.closed == 200)
    }

    @Test("what a late turn has missed is not made up for beyond a tenth of a second")
    func late() throws {
        let link = try Self.link(clients: 200)
        link.shard.startDrain(perSecond: 100)
        Self.tick(link, milliseconds: 1_500)
        #expect(link.closed.count == 10)
        Self.tick(link, milliseconds: 10)
        #expect(link.closed.count == 11)
    }

    @Test("a turn closes at most 256 connections, whatever the rate")
    func bounded() throws {
        let link = try Self.link(clients: 1_000)
        link.shard.startDrain(perSecond: 100_000)
        var former = 0
        while link.closed.count < 1_000 {
            Self.tick(link, milliseconds: 1)
            #expect(link.closed.count - former <= 256)
            guard link.closed.count > former else {
                Issue.record("nobody was closed")
                return
            }
            former = link.closed.count
        }
    }

    @Test("the loop sleeps until the next connection is due, and for good when none is left")
    func deadline() throws {
        let link = try Self.link(clients: 2)
        let idle = link.shard.nextDeadline
        link.shard.startDrain(perSecond: 4)
        let begin = link.shard.now
        #expect(link.shard.nextDeadline == begin.advanced(byMilliseconds: 250))
        Self.tick(link, milliseconds: 250)
        #expect(link.shard.nextDeadline == begin.advanced(byMilliseconds: 500))
        Self.tick(link, milliseconds: 250)
        #expect(Self.tick(link, milliseconds: 250))
        #expect(link.shard.nextDeadline == idle)
        link.shard.endDrain()
        #expect(link.shard.drainStatus == DrainStatus(connections: 0))
    }

    @Test("another rate counts from its change")
    func changed() throws {
        let link = try Self.link(clients: 100)
        link.shard.startDrain(perSecond: 1)
        Self.tick(link, milliseconds: 900)
        #expect(link.closed.isEmpty)
        link.shard.startDrain(perSecond: 10)
        Self.tick(link, milliseconds: 100)
        #expect(link.closed.count == 1)
        #expect(link.shard.drainStatus.perSecond == 10 && link.shard.drainStatus.closed == 1)
    }

    @Test("a broker with no client is drained at once")
    func empty() {
        let link = ShardLink()
        link.shard.startDrain(perSecond: 1)
        let isDone = link.shard.continueDrain()
        #expect(isDone)
        #expect(link.shard.drainStatus.state == .drained)
    }

    @Test("a CONNECT on an earlier connection gets code 3, also after its password check")
    func refused() throws {
        let link = ShardLink()
        let early = link.open()
        let checked = ShardLink(verifiesPasswords: true)
        let waiting = checked.open()
        checked.answer = { _ in
            checked.shard.startDrain(perSecond: 1)
            return .rightPassword
        }
        var connect = PacketContent.Connect(clientID: "phone")
        link.shard.startDrain(perSecond: 1)
        try link.send(early, .connect(connect))
        #expect(try link.take(early) == [.connack(.refused(.serverUnavailable))])
        connect.userName = Array("ann".utf8)
        connect.password = Array("x".utf8)
        try checked.send(waiting, .connect(connect))
        #expect(try checked.take(waiting) == [.connack(.refused(.serverUnavailable))])
        #expect(checked.closeReasons == [.draining])
    }

    @Test("sessions stay with what waits, and wills are published")
    func sessionsStay() throws {
        let link = ShardLink()
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("wills/#", .atLeastOnce))
        _ = try link.take(phone)
        _ = try link.connect("device") {
            $0.will = PacketContent.Will(
                topic: "wills/device", message: [1], qos: .atLeastOnce, retain: false)
        }
        link.shard.startDrain(perSecond: 1_000)
        while !Self.tick(link, milliseconds: 1) {}
        #expect(link.closed.count == 2)
        link.shard.endDrain()
        let again = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(again, .connect(connect))
        let packets = try link.take(again)
        #expect(packets.first == .connack(.accepted(sessionPresent: true)))
        #expect(packets.count == 2, "the will that was published to it")
    }
}
