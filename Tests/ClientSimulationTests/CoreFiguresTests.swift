import FoundationEssentials
import Glibc
import MQTTCodec
import Testing

@testable import HermesClientCore

/// Cores without a network: the storm after a broker's end, and what a core costs.
@Suite("Many cores")
struct CoreFiguresTests {
    private static let connack: [UInt8] = [0x20, 2, 0, 0]

    private static func moment(_ now: Int64) -> Moment {
        Moment(monotonicMilliseconds: now, unixMilliseconds: 1_800_000_000_000 + now)
    }

    private static func connected(_ number: UInt64) -> ClientMachine {
        var machine = ClientMachine(
            settings: ClientSettings(clientID: Array("phone\(number)".utf8)),
            stored: StoredState(), logBytes: 0, random: SeededNumbers(seed: number))
        machine.start(at: moment(0))
        machine.transportOpened(ConnectionNumber(rawValue: 1), at: moment(0))
        machine.received(connack, on: ConnectionNumber(rawValue: 1), at: moment(0))
        _ = machine.takeActions()
        return machine
    }

    @Test("10,000 cores that lose their broker come back over 14 s, 20 % around uniform at most")
    func storm() {
        var bins = Array(repeating: 0, count: 15)
        for number in UInt64(1)...10_000 {
            var machine = Self.connected(number)
            machine.transportClosed(
                ConnectionNumber(rawValue: 1), .closedByPeer, at: Self.moment(100_000))
            guard case .waiting(let until) = machine.phase else {
                Issue.record("core \(number) does not wait")
                return
            }
            bins[Int(until - 100_000) / 1_000] += 1
        }
        // From 1 s on, both ends included: the last millisecond lies alone in the last bin.
        let uniform = 10_000.0 / 14
        let counts = bins[1...14].map(Double.init)
        Figures.show("storm of 10,000 cores, by second from 1 s on: \(bins[1...])")
        Figures.show(
            "furthest from uniform: \((counts.map { abs($0 / uniform - 1) }.max() ?? 1) * 100) %")
        #expect(bins[0] == 0)
        #expect(counts.allSatisfy { abs($0 / uniform - 1) <= 0.2 }, "\(bins)")
    }

    @Test("what a message costs, and a core", .enabled(if: Figures.areAsked))
    func cost() throws {
        let messages = 1_000_000
        let number = ConnectionNumber(rawValue: 1)
        var machine = Self.connected(1)
        let payload = Array(repeating: UInt8(ascii: "x"), count: 200)
        var packet: [UInt8] = [0x32, 0xCE, 0x01, 0, 2, UInt8(ascii: "o"), UInt8(ascii: "1"), 0, 1]
        packet += payload
        let begin = clock()
        for index in 0..<messages {
            let identifier = index % 20 + 1
            packet[8] = UInt8(identifier)
            let now = Self.moment(Int64(index / 1_000))
            machine.received(packet, on: number, at: now)
            while let message = machine.takeMessage() {
                machine.acknowledge(message.number, at: now)
            }
            _ = machine.takeActions()
        }
        let seconds = Double(clock() - begin) / Double(CLOCKS_PER_SEC)
        #expect(machine.counters.received == UInt64(messages))
        Figures.show("receive, take and acknowledge: \(seconds / Double(messages) * 1e6) us")
        let before = try Self.residentBytes()
        let cores = (UInt64(1)...10_000).map(Self.connected)
        let bytes = try Self.residentBytes() - before
        Figures.show("a connected core: \(bytes / cores.count) bytes")
    }

    private static func residentBytes() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
            .split(separator: " ")
        return try #require(Int(fields[1])) * 4_096
    }
}
