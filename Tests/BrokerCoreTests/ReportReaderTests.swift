import BrokerAPI
import CHermesProtos
import HermesTesting
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Reading a client's report")
struct ReportReaderTests {
    private static func read(_ bytes: [UInt8]) -> (figures: ReportedFigures, network: [UInt8])? {
        bytes.withUnsafeBytes { bytes in
            ReportReader.read(bytes).map { ($0.figures, [UInt8]($0.network)) }
        }
    }

    /// A report as protobuf-c packs it.
    private static func packed(
        _ counts: ReportedCounts, losses: [String: UInt64], heartbeatSeconds: UInt32,
        sinceMs: Int64, network: String
    ) -> [UInt8] {
        let names = losses.keys.sorted().map { ($0, $0.utf8CString.map { $0 }) }
        var label = network.utf8CString.map { $0 }
        var entries = names.map { name, _ in
            var entry = Hermes__V1__ClientReport__LossesEntry()
            hermes__v1__client_report__losses_entry__init(&entry)
            entry.value = losses[name] ?? 0
            return entry
        }
        let keys = names.map { _, text in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count)
            copy.initialize(from: text, count: text.count)
            return copy
        }
        defer { keys.forEach { $0.deallocate() } }
        return entries.withUnsafeMutableBufferPointer { entries in
            for index in entries.indices { entries[index].key = keys[index] }
            let base = entries.baseAddress
            var pointers = entries.indices.map { index in base.map { $0 + index } }
            return label.withUnsafeMutableBufferPointer { label in
                pointers.withUnsafeMutableBufferPointer { pointers in
                    var message = Hermes__V1__ClientReport()
                    hermes__v1__client_report__init(&message)
                    message.received = counts.received
                    message.duplicates = counts.duplicates
                    message.connects = counts.connects
                    message.lost_connections = counts.lostConnections
                    message.lost_sessions = counts.lostSessions
                    message.dropped_at_most_once = counts.droppedAtMostOnce
                    message.published = counts.published
                    message.heartbeat_seconds = heartbeatSeconds
                    message.since_ms = sinceMs
                    message.network = label.baseAddress
                    message.n_losses = pointers.count
                    message.losses = pointers.baseAddress
                    var bytes = [UInt8](
                        repeating: 0, count: hermes__v1__client_report__get_packed_size(&message))
                    hermes__v1__client_report__pack(&message, &bytes)
                    return bytes
                }
            }
        }
    }

    @Test("what protobuf-c packs is read as it was, over many reports")
    func differential() throws {
        var random = SplitMix64(seed: 7)
        for _ in 0..<500 {
            var counts = ReportedCounts()
            for (_, path) in ReportedCounts.all {
                // Every length of a varint up to the largest counter.
                counts[keyPath: path] = random.next() >> UInt64.random(in: 24...63, using: &random)
            }
            var losses: [String: UInt64] = [:]
            for index in 0..<Int.random(in: 0...5, using: &random) {
                losses["orders/\(index)"] = random.next() >> 30
            }
            counts.losses = losses.values.reduce(0, +)
            let heartbeat = UInt32.random(in: 0...1_200, using: &random)
            let sinceMs = Int64(bitPattern: random.next())
            let network = Bool.random(using: &random) ? "wifi-ä" : ""
            let bytes = Self.packed(
                counts, losses: losses, heartbeatSeconds: heartbeat, sinceMs: sinceMs,
                network: network)
            let read = try #require(Self.read(bytes))
            #expect(read.figures.counts == counts)
            #expect(read.figures.heartbeatSeconds == heartbeat)
            #expect(read.figures.sinceMs == sinceMs)
            #expect(read.network == Array(network.utf8))
        }
    }

    @Test("fields of later versions and known fields of another type are skipped")
    func unknownFields() throws {
        let bytes: [UInt8] =
            [0x08, 7]  // 1 received 7
            + [0x98, 0x06, 5]  // 99 varint
            + [0xA1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8]  // 100 fixed64
            + [0xAA, 0x06, 2, 9, 9]  // 101 bytes
            + [0xB5, 0x06, 1, 2, 3, 4]  // 102 fixed32
            + [0x12, 1, 0xFF]  // 2 duplicates, as bytes
            + [0x38, 1]  // 7 network, as a number
            + [0x20, 3]  // 4 connects 3
        let read = try #require(Self.read(bytes))
        #expect(read.figures.counts.received == 7)
        #expect(read.figures.counts.connects == 3)
        #expect(read.figures.counts.duplicates == 0)
        #expect(read.network.isEmpty)
    }

    @Test(
        "what breaks the format is malformed",
        arguments: [
            [0x08], [0x08, 0x80], [0x00, 1], [0x07], [0x0B], [0x0C], [0x3A, 5, 1],
            [0x3A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            [0x08] + [UInt8](repeating: 0xFF, count: 11), [0x1A, 1, 0x10], [0x1A, 2, 0x0A, 9],
            [0x09, 1, 2, 3], [0x0D, 1], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0],
        ] as [[UInt8]])
    func malformed(bytes: [UInt8]) { #expect(Self.read(bytes) == nil) }

    @Test("every prefix of a report and many wrong bytes are read or refused, without a trap")
    func hostile() {
        var counts = ReportedCounts()
        counts.received = 1 << 39
        let report = Self.packed(
            counts, losses: ["a": 1, "b": .max], heartbeatSeconds: 240, sinceMs: -1, network: "x")
        for count in 0..<report.count { _ = Self.read(Array(report[..<count])) }
        var random = SplitMix64(seed: 9)
        for _ in 0..<20_000 {
            var bytes = report
            for _ in 0...Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            if let read = Self.read(bytes) {
                for (_, path) in ReportedCounts.all {
                    #expect(read.figures.counts[keyPath: path] <= 1 << 40)
                }
            }
        }
    }

    @Test("counters beyond 2^40 count as 2^40, losses of all channels together too")
    func greatest() throws {
        var counts = ReportedCounts()
        counts.received = .max
        let bytes = Self.packed(
            counts, losses: ["a": .max, "b": .max], heartbeatSeconds: 0, sinceMs: 0, network: "")
        let read = try #require(Self.read(bytes))
        #expect(read.figures.counts.received == 1 << 40)
        #expect(read.figures.counts.losses == 1 << 40)
    }
}
