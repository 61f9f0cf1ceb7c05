import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// SUBSCRIBE and UNSUBSCRIBE with many filters take several turns.
@Suite("Filters in slices")
struct FilterSliceTests {
    private static let filters = (0..<4_000).map { "\($0)/a/b/c/d/e/f/g" }
    private static let granted = PacketContent.suback(7, Array(repeating: 1, count: filters.count))

    private func subscribe(_ filters: [String] = filters) -> PacketContent {
        .subscribe(7, filters.map { PacketContent.Request($0, .atLeastOnce) })
    }

    private func unsubscribe() -> PacketContent {
        .unsubscribe(8, Self.filters.map { Array($0.utf8) })
    }

    /// Hands packets to the shard, so that the first slice is done.
    private func begin(
        _ link: ShardLink, _ client: Handle, _ packets: PacketContent...
    ) throws {
        link.receive(client, try packets.flatMap { try $0.encoded() })
    }

    /// Runs turns until the client has an answer, while another client pings. Returns their number.
    private func turns(
        _ link: ShardLink, until client: Handle, _ other: Handle
    ) throws -> (count: Int, answers: [PacketContent]) {
        for count in 1...200 {
            link.receive(other, try PacketContent.pingreq.encoded())
            link.turnOnce()
            #expect(try link.take(other) == [.pingresp])
            let answers = try link.take(client)
            if !answers.isEmpty { return (count, answers) }
        }
        return (200, [])
    }

    @Test("others are served between slices; one answer follows the last, then what came behind")
    func slices() throws {
        let link = ShardLink()
        let (client, other) = (try link.connect("client"), try link.connect("other"))
        try begin(link, client, subscribe(), .pingreq)
        #expect((1...2_000).contains(link.shard.figures.subscriptions))
        var (count, answers) = try turns(link, until: client, other)
        #expect(answers == [Self.granted, .pingresp] && count > 3)
        #expect(link.shard.figures.subscriptions == Self.filters.count)

        try begin(link, client, unsubscribe(), .pingreq)
        #expect(link.shard.figures.subscriptions > 2_000)
        (count, answers) = try turns(link, until: client, other)
        #expect(answers == [.unsuback(8), .pingresp] && count > 3)
        #expect(link.shard.figures.subscriptions == 0)
    }

    @Test("the answer waits for the commits of all slices, in whatever order they complete")
    func commits() throws {
        let link = ShardLink(isImmediate: false)
        let client = try link.connect("client", cleanSession: false)
        for packet in [subscribe(), unsubscribe()] {
            try link.send(client, packet)
            let tickets = link.store.pending
            #expect(tickets.count > 3)
            for ticket in tickets.dropFirst().reversed() { link.store.complete(ticket) }
            link.turn()
            #expect(try link.take(client) == [])
            link.store.complete(tickets[0])
            link.turn()
            #expect(try link.take(client).count == 1)
        }
    }

    @Test("a connection that closes between slices leaves what was carried out, and nothing else")
    func closed() throws {
        let link = ShardLink()
        let other = try link.connect("other")
        _ = try link.connect("client", cleanSession: false)
        let before = link.shard.pool.bytesInUse
        for _ in 1...3 {
            // Each takes the session over from the one before.
            let client = try link.connect("client", cleanSession: false)
            try begin(link, client, subscribe())
        }
        link.turnOnce()
        let carriedOut = link.shard.figures.subscriptions
        #expect((1..<Self.filters.count).contains(carriedOut))
        let stored = Set(
            link.store.records.compactMap {
                if case .subscription(_, let filter, _) = $0 { filter } else { nil }
            })
        #expect(stored.count == carriedOut)

        let client = try link.connect("client", cleanSession: false)
        #expect(link.shard.figures.subscriptions == carriedOut)
        try begin(link, client, subscribe())
        #expect(try turns(link, until: client, other).answers == [Self.granted])
        #expect(link.shard.figures.subscriptions == Self.filters.count)

        try begin(link, client, unsubscribe())
        link.lose(client)
        let cleared = try link.connect("client")
        link.lose(cleared)
        for _ in 1...20 { link.turn() }
        #expect(link.shard.figures.subscriptions == 0)
        #expect(link.shard.pool.bytesInUse <= before)
    }

    /// Filters of a kilobyte that a client chose took a String's sort minutes, on the shard's thread.
    @Test("filters of combining marks are listed by their bytes, at their length's cost")
    func marks() throws {
        let marks =
            String(repeating: "\u{301}", count: 15_000)
            + String(repeating: "\u{316}", count: 15_000)
        let filters = (0..<8).map { "\($0)\(marks)" }
        let link = ShardLink()
        let client = try link.connect("client")
        link.receive(client, try subscribe(filters.reversed()).encoded())
        for _ in 0..<10 { link.turnOnce() }
        let time = ContinuousClock().measure {
            let detail = link.shard.client("client") { _ in "" }
            #expect(
                detail?.subscriptionList.map { Array($0.filter.utf8) }
                    == filters.map { Array($0.utf8) })
        }
        #expect(time < .seconds(10), "\(time)")
    }

    @Test("malformed filters at the end of a packet close the connection before any is granted")
    func malformed() throws {
        let link = ShardLink()
        let client = try link.connect("client")
        var bytes = try subscribe().encoded()
        bytes[bytes.count - 1] = 3
        link.send(client, bytes)
        #expect(link.closed.contains(client))
        #expect(link.shard.figures.subscriptions == 0)
    }

    @Test("a message that is published between slices goes by the filters carried out so far")
    func between() throws {
        let link = ShardLink()
        let (client, publisher) = (try link.connect("client"), try link.connect("publisher"))
        try begin(link, client, subscribe())
        for filter in [Self.filters[0], Self.filters[3_999]] {
            link.receive(publisher, try PacketContent.publish(filter, "x").encoded())
        }
        link.turn()
        let received = try link.take(client)
        #expect(received.last == Self.granted)
        #expect(received.dropLast() == [.publish(Self.filters[0], "x")])
    }
}
