import HermesTesting
import Testing

@testable import Structures

@Suite("Compact bytes")
struct CompactBytesTests {
    @Test(
        "keeps its bytes",
        arguments: [0, 1, 7, 8, 9, 11, 12, 13, 16, 17, 100, 2_048, 65_535])
    func content(count: Int) {
        let owner = TestPool()
        var random = SplitMix64(seed: UInt64(count))
        let bytes = random.bytes(count)
        let compact = bytes.compact(owner.pool)
        defer { compact.destroy(in: owner.pool) }
        #expect(compact.count == count)
        #expect(compact.isEmpty == (count == 0))
        #expect(compact.array == bytes)
        #expect(compact.withBytes { $0.count } == count)
        bytes.withUnsafeBytes { #expect(compact.equals($0)) }
        // A copy of the value shares the reference and reads the same.
        let copy = compact
        #expect(copy.array == bytes)
    }

    @Test("differs if any byte or the length differs", arguments: [1, 8, 11, 12, 13, 40])
    func difference(count: Int) {
        let owner = TestPool()
        let bytes = (0..<count).map { UInt8($0) }
        let compact = bytes.compact(owner.pool)
        defer { compact.destroy(in: owner.pool) }
        for position in 0..<count {
            var changed = bytes
            changed[position] ^= 0x80
            changed.withUnsafeBytes { #expect(!compact.equals($0), "byte \(position)") }
        }
        bytes.dropLast().withUnsafeBytes { #expect(!compact.equals($0)) }
        (bytes + [0]).withUnsafeBytes { #expect(!compact.equals($0)) }
    }

    @Test("is 16 bytes and takes a buffer beyond twelve only")
    func memory() {
        #expect(MemoryLayout<CompactBytes>.size == 16)
        let owner = TestPool()
        let index = BytePool.classIndex(for: 13)
        let short = [UInt8](repeating: 1, count: 12).compact(owner.pool)
        #expect(owner.pool.classes[index].freeCount == 0)
        let long = [UInt8](repeating: 1, count: 13).compact(owner.pool)
        let carved = owner.pool.classes[index].freeCount
        #expect(carved > 0)
        short.destroy(in: owner.pool)
        #expect(owner.pool.classes[index].freeCount == carved)
        long.destroy(in: owner.pool)
        #expect(owner.pool.classes[index].freeCount == carved + 1)
    }

    @Test("buffers compare eight bytes at a time, wherever they stand", arguments: 0...33)
    func comparison(count: Int) {
        var random = SplitMix64(seed: UInt64(count))
        for offset in 0..<8 {
            let text = random.bytes(count)
            let left = random.bytes(offset) + text + random.bytes(8)
            left.withUnsafeBytes { left in
                let left = UnsafeRawBufferPointer(rebasing: left[offset..<offset + count])
                text.withUnsafeBytes { #expect(left.elementsAreEqual(to: $0)) }
                for position in 0..<count {
                    var changed = text
                    changed[position] &+= 1
                    changed.withUnsafeBytes { #expect(!left.elementsAreEqual(to: $0)) }
                }
            }
        }
    }
}
