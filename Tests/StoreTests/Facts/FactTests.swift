import HermesTesting
import Testing

@testable import Store

@Suite("Facts")
struct FactTests {
    @Test(
        "the partition of an owner is the last byte of the CRC32C of its name",
        arguments: [
            ("", 0x00), ("123456789", 0x83), ("phone-1", FactTests.reference("phone-1")),
            ("orders/42", FactTests.reference("orders/42")),
        ] as [(String, UInt8)])
    func partitions(name: String, partition: UInt8) {
        #expect(FactOwner(Array(name.utf8)).partition == partition)
    }

    @Test("names that differ in their last digits spread over all partitions")
    func spread() {
        var counts = [Int](repeating: 0, count: 256)
        for number in 1...25_600 {
            counts[Int(FactOwner(Array("phone-\(number)".utf8)).partition)] += 1
        }
        #expect(counts.allSatisfy { (50...200).contains($0) })
    }

    @Test("a record holds key and value behind lengths of one byte, or more for long ones")
    func bytes() throws {
        let short = Self.record(key: [1, 2], value: [UInt8](repeating: 7, count: 127))
        #expect(short.prefix(7) == [64, 9, 0x83, 2, 1, 2, 127])
        #expect(short.count == 3 + 3 + 128)
        let long = Self.record(key: [], value: [UInt8](repeating: 7, count: 300))
        #expect(long.prefix(6) == [64, 9, 0x83, 0, 0xAC, 2])
        for record in [short, long] {
            try record.withUnsafeBytes { bytes in
                var reader = RecordReader(bytes)
                let view = try reader.next()
                guard case .fact(_, let value, false)? = view else {
                    Issue.record("the record is \(String(describing: view))")
                    return
                }
                #expect(reader.offset == record.count)
                #expect(value.count == record.count - value.offset)
            }
            for cut in 1..<record.count {
                let part = [UInt8](record.prefix(cut))
                part.withUnsafeBytes { bytes in
                    var reader = RecordReader(bytes)
                    #expect(throws: DamagedRecord.self) { _ = try reader.next() }
                }
            }
        }
    }

    @Test("a new fact that is removed within its segment costs the database nothing")
    func newAndRemoved() throws {
        var log = FactLog()
        Self.put(1, [1], [7], isNew: true, &log)
        Self.put(1, [1], [8, 9], isNew: false, &log)
        Self.remove(1, [1], &log)
        let isEmpty = log.isEmpty
        #expect(isEmpty)
        var changes = log.changes
        changes.sort()
        #expect(changes.entries.isEmpty && changes.removals.isEmpty)
        // One that the database may have must leave it.
        Self.remove(1, [2], &log)
        Self.put(1, [2], [7], isNew: true, &log)
        Self.remove(1, [2], &log)
        changes = log.changes
        changes.sort()
        #expect(changes.entries.map(\.state) == [.removed])
    }

    @Test("a removed range takes what came before it, and nothing that came after")
    func ranges() throws {
        var log = FactLog()
        for key in UInt8(1)...5 { Self.put(1, [key], [key], isNew: true, &log) }
        Self.put(2, [3], [3], isNew: true, &log)
        Self.removeRange(1, [], [3], &log)
        Self.put(1, [2], [20], isNew: true, &log)
        Self.removeRange(1, [], [4], &log)
        Self.put(1, [1], [10], isNew: true, &log)
        var changes = log.changes
        changes.sort()
        #expect(changes.removals.count == 1, "the second one takes all that the first one does")
        let left = changes.bytes.withUnsafeBytes { bytes in
            changes.entries.map { [$0.table] + $0.key(in: bytes).bytes + $0.value(in: bytes) }
        }
        #expect(left == [[1, 1, 10], [1, 4, 4], [1, 5, 5], [2, 3, 3]])
    }

    // MARK: Support

    static func reference(_ name: String) -> UInt8 {
        // Bit by bit, as the polynomial says.
        var checksum = UInt32.max
        for byte in name.utf8 {
            checksum ^= UInt32(byte)
            for _ in 0..<8 {
                checksum = checksum & 1 == 1 ? checksum >> 1 ^ 0x82F6_3B78 : checksum >> 1
            }
        }
        return UInt8(truncatingIfNeeded: ~checksum)
    }

    private static func record(key: [UInt8], value: [UInt8]) -> [UInt8] {
        var batch = WriteBatch(isRecording: true)
        batch.fact(
            FactTable(number: 9, name: "test"), of: FactOwner(Array("123456789".utf8))
        ) {
            $0.putRest(key)
        } value: {
            $0.putRest(value)
        }
        return batch.takeBytes(leaving: [])
    }

    private static func put(
        _ table: UInt8, _ key: [UInt8], _ value: [UInt8], isNew: Bool, _ log: inout FactLog
    ) {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes {
                log.put(FactKey(table, key), of: .broker, $0, isNew: isNew)
            }
        }
    }

    private static func remove(_ table: UInt8, _ key: [UInt8], _ log: inout FactLog) {
        key.withUnsafeBytes { log.remove(FactKey(table, $0), of: .broker) }
    }

    private static func removeRange(
        _ table: UInt8, _ from: [UInt8], _ below: [UInt8], _ log: inout FactLog
    ) {
        from.withUnsafeBytes { from in
            below.withUnsafeBytes { log.remove(table, from: from, below: $0) }
        }
    }
}
