import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("The line of sends")
struct SendLineTests {
    /// A shard whose sends are noted, in order.
    private final class Line {
        let link = ShardLink()
        private(set) var sends: [Handle] = []
        let publisher: Handle
        let quiet: Handle

        init() throws {
            publisher = try link.connect("publisher")
            quiet = try link.connect("quiet")
            link.onSend = { [unowned self] in sends.append($0) }
        }

        func subscribers(_ count: Int, of topic: String = "t") throws -> [Handle] {
            try (0..<count).map {
                try link.subscriber("\(topic)-\($0)", to: topic, .atMostOnce, cleanSession: true)
            }
        }

        /// Hands packets to the shard without a turn.
        func receive(_ handle: Handle, _ packets: PacketContent...) throws {
            for packet in packets { link.receive(handle, try packet.encoded()) }
        }

        /// One turn, whose sends are returned.
        func turn() -> [Handle] {
            sends = []
            link.turnOnce()
            return sends
        }
    }

    private static func large(_ topic: String, _ mark: Character) -> PacketContent {
        .publish(topic, String(repeating: mark, count: 60_000))
    }

    @Test("a PINGRESP goes before the backlog of a megabyte, which goes in parts of 64 KiB")
    func backlog() throws {
        let line = try Line()
        let reader = try line.subscribers(1)[0]
        for mark in "abcdefghijklmnopqr" { try line.receive(line.publisher, Self.large("t", mark)) }
        let unsent = line.link.shard.withOutput(of: reader) { $0.count }
        #expect(unsent > 1_000_000)
        try line.receive(line.quiet, .pingreq)
        let sends = line.turn()
        #expect(sends.first == line.quiet)
        // 128 units of a turn: 1 for the answer, 9 for each part.
        #expect(sends.dropFirst().count == 15)
        #expect(sends.dropFirst().allSatisfy { $0 == reader })
        let left = line.link.shard.withOutput(of: reader) { $0.count }
        #expect(left == unsent - 15 * 65_536)
        #expect(line.link.shard.nextDeadline == line.link.shard.now, "the rest follows at once")

        // An answer that comes meanwhile does not wait for the rest either.
        try line.receive(line.quiet, .pingreq)
        #expect(line.turn().first == line.quiet)
        line.link.turn()
        let received = try line.link.take(reader)
        #expect(received == "abcdefghijklmnopqr".map { Self.large("t", $0) })
    }

    @Test("two with much unsent take turns, and a message behind the backlog keeps its place")
    func turns() throws {
        let line = try Line()
        let readers = try ["one", "two"].map { try line.subscribers(1, of: $0)[0] }
        for mark in "abcd" {
            try line.receive(line.publisher, Self.large("one", mark), Self.large("two", mark))
        }
        try line.receive(line.publisher, .publish("one", "last"))
        // The reader's own answer stands behind what its client is owed before.
        try line.receive(readers[0], .pingreq)
        #expect(line.turn() == [[Handle]](repeating: readers, count: 4).flatMap { $0 })
        #expect(
            try line.link.take(readers[0])
                == "abcd".map { Self.large("one", $0) } + [.publish("one", "last"), .pingresp])
        #expect(try line.link.take(readers[1]).count == 4)
    }

    @Test(
        "messages to few go first, those to many go behind all answers",
        arguments: [(5, true), (16, true), (17, false), (50, false), (64, false), (65, false)])
    func receivers(count: Int, areFirst: Bool) throws {
        let line = try Line()
        let readers = Set(try line.subscribers(count))
        try line.receive(line.publisher, .publish("t", "x"))
        try line.receive(line.quiet, .pingreq)
        let sends = line.turn()
        #expect(sends.count == count + 1)
        #expect(Set(sends.dropLast(areFirst ? 1 : 0)).isSuperset(of: areFirst ? readers : []))
        #expect(sends.firstIndex(of: line.quiet) == (areFirst ? count : 0))
    }

    @Test("ten topics of twelve: together they are as many as one topic of very many")
    func topics() throws {
        let line = try Line()
        for topic in 0..<10 { _ = try line.subscribers(12, of: "t\(topic)") }
        for topic in 0..<10 { try line.receive(line.publisher, .publish("t\(topic)", "x")) }
        try line.receive(line.quiet, .pingreq)
        let sends = line.turn()
        #expect(sends.count == 121)
        // The first topic's receivers, and then the answer.
        #expect(sends.firstIndex(of: line.quiet) == 12)
    }

    @Test("clients that send to four each have places in the first line, however long it is")
    func conversations() throws {
        let line = try Line()
        _ = try line.subscribers(16, of: "many")
        let four = Set(try line.subscribers(4, of: "four"))
        try line.receive(line.publisher, .publish("many", "x"))
        try line.receive(line.quiet, .publish("four", "x"), .pingreq)
        let sends = line.turn()
        #expect(Set(sends[16..<20]) == four && sends[20] == line.quiet)
    }

    @Test("while the first line is never empty, those behind have a quarter of the sends")
    func shares() throws {
        let line = try Line()
        let readers = try line.subscribers(1_000)
        let others = try (0..<400).map { try line.link.connect("other-\($0)") }
        try line.receive(line.publisher, .publish("t", "x"))
        for other in others { try line.receive(other, .pingreq) }
        var sends = line.turn()
        sends += line.turn()
        let behind = sends.filter { Set(readers).contains($0) }.count
        #expect((50...64).contains(behind), "\(behind) of \(sends.count)")
        line.link.turn()
        for reader in readers { #expect(try line.link.take(reader).count == 1) }
    }

    @Test("a receiver of a message to many whose own answer went first is sent once")
    func both() throws {
        let line = try Line()
        let readers = try line.subscribers(100)
        try line.receive(line.publisher, .publish("t", "x"))
        try line.receive(readers[99], .pingreq)
        let sends = line.turn()
        #expect(sends.first == readers[99] && sends.count == 100)
        #expect(try line.link.take(readers[99]) == [.publish("t", "x"), .pingresp])
    }

    @Test("a connection that closes with much unsent leaves the line")
    func closed() throws {
        let line = try Line()
        let readers = try line.subscribers(2)
        for mark in "abcdefghijklmnopqr" { try line.receive(line.publisher, Self.large("t", mark)) }
        _ = line.turn()
        line.link.shard.lost(readers[0], .peerClosed)
        line.link.turnOnce()
        #expect(line.turn().allSatisfy { $0 == readers[1] })
        line.link.turn()
        #expect(try line.link.take(readers[1]).count == 18)
        let hasWaiters = line.link.shard.hasTurnWaiters
        #expect(!hasWaiters)
    }

    @Test("a socket that has room again stands in line with much, and sends little at once")
    func room() throws {
        let line = try Line()
        let reader = try line.subscribers(1)[0]
        try line.receive(line.publisher, .publish("t", "little"))
        let waitsWithLittle = line.link.shard.hasRoom(reader)
        #expect(!waitsWithLittle)
        line.link.turn()
        line.link.block(reader)
        for mark in "ab" { try line.receive(line.publisher, Self.large("t", mark)) }
        #expect(line.turn() == [reader])
        #expect(line.turn().isEmpty, "a socket without room is not asked again")
        let waitsWithMuch = line.link.shard.hasRoom(reader)
        #expect(waitsWithMuch)
        #expect(line.turn() == [reader])
    }
}
