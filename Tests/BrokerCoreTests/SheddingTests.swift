import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Shedding of a shard")
struct SheddingTests {
    /// A subscriber that reads nothing, with so many messages of 1,000 bytes for it.
    private static func reader(_ link: ShardLink, _ name: String, _ messages: Int) throws -> Handle
    {
        let reader = try link.connect(name)
        try link.send(reader, .subscribe(name, .atMostOnce))
        link.block(reader)
        let publisher = try link.connect("\(name)-publisher")
        let payload = String(repeating: "x", count: 1_000)
        for _ in 0..<messages { try link.send(publisher, .publish(name, payload)) }
        return reader
    }

    @Test("slow readers go, largest first, until enough is free; others stay")
    func readers() throws {
        let link = ShardLink()
        let small = try Self.reader(link, "small", 60)
        let middle = try Self.reader(link, "middle", 200)
        let large = try Self.reader(link, "large", 300)
        let well = try link.connect("well")

        #expect(link.shard.shedReaders(bytes: 1) >= 300_000)
        link.turn()
        #expect(link.closed == [large])
        #expect(link.closeReasons == [.memoryShortage])
        #expect(link.shard.shedReaders(bytes: 10_000_000) >= 200_000)
        link.turn()
        #expect(link.closed == [large, middle])
        #expect(link.shard.shedReaders(bytes: 10_000_000) == 0)
        link.turn()
        try link.send(well, .pingreq)
        #expect(try link.take(well) == [.pingresp])
        #expect(!link.closed.contains(small))
        #expect(link.shard.counters.limits[.memory] == 2)
    }

    @Test("connections without CONNECT are closed; accepted ones stay")
    func newcomers() throws {
        let link = ShardLink(isImmediate: false)
        let silent = link.open()
        let half = link.open()
        link.send(half, [0x10, 40, 0, 4])
        let opening = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(opening, .connect(connect))
        let inUse = try link.connect("in")

        link.shard.shedNewcomers()
        link.turn()
        #expect(link.closed == [silent, half])
        link.store.completeAll()
        link.turn()
        #expect(try link.take(opening) == [.connack(.accepted(sessionPresent: false))])
        try link.send(inUse, .pingreq)
        #expect(try link.take(inUse) == [.pingresp])
    }
}
