import HermesTesting
import Testing

@testable import Structures

@Suite("Hash index")
struct HashIndexTests {
    /// The distribution of hashes: `distinct` values in steps of `step`, to cause collisions.
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let distinct: Int
        let step: UInt64
    }

    static let shapes = [
        Shape(testDescription: "all hashes differ", distinct: 1 << 30, step: 0x9E37_79B9),
        Shape(testDescription: "all hashes are equal", distinct: 1, step: 7),
        Shape(testDescription: "few hashes", distinct: 5, step: 0x9E37_79B9),
        Shape(testDescription: "neighbours in the table", distinct: 40, step: 1),
        Shape(testDescription: "equal in the low bits", distinct: 1_000, step: 1 << 16),
        Shape(testDescription: "equal in the low 32 bits", distinct: 1_000, step: 1 << 32),
        Shape(testDescription: "homes at the end of the table", distinct: 3, step: UInt64.max),
    ]

    @Test("agrees with a dictionary", arguments: shapes, UInt64(1)...4)
    func model(shape: Shape, seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var index = HashIndex()
        var hashes: [UInt32: UInt64] = [:]
        var free: UInt32 = 0
        var grows = true
        for step in 0..<4_000 {
            if hashes.count > 300 { grows = false }
            if hashes.count < 5 { grows = true }
            if random.once(in: grows ? 3 : 2),
                let (record, hash) = hashes.randomElement(using: &random)
            {
                index.remove(hash, record)
                hashes[record] = nil
            } else if grows || random.once(in: 4) {
                let hash = UInt64(random.number(in: 0...shape.distinct - 1)) &* shape.step
                index.insert(hash, free)
                hashes[free] = hash
                free += 1
            }
            #expect(index.count == hashes.count, "seed \(seed), step \(step)")
            if step % 200 == 0 { compare(index, hashes, "seed \(seed), step \(step)") }
        }
        compare(index, hashes, "seed \(seed), at the end")
    }

    private func compare(
        _ index: borrowing HashIndex, _ hashes: [UInt32: UInt64], _ comment: Comment
    ) {
        for (record, hash) in hashes {
            #expect(index.find(hash) { $0 == record } == record, comment)
        }
        // An absent record is not found, and every candidate has the right hash.
        for (_, hash) in hashes {
            var candidates: Set<UInt32> = []
            #expect(
                index.find(hash) {
                    candidates.insert($0)
                    return false
                } == nil, comment)
            let short = UInt32(truncatingIfNeeded: hash)
            let expected = hashes.filter { UInt32(truncatingIfNeeded: $0.value) == short }
            #expect(candidates == Set(expected.keys), comment)
        }
    }

    @Test("agrees with a dictionary while it grows to many tables and shrinks again")
    func manyTables() {
        let hash = KeyedHash(seed: 3)
        func key(_ record: UInt32) -> UInt64 { withUnsafeBytes(of: record) { hash($0) } }
        var index = HashIndex()
        for record in UInt32(0)..<50_000 { index.insert(key(record), record) }
        for record in UInt32(0)..<50_000 {
            #expect(index.find(key(record)) { $0 == record } == record)
        }
        #expect(index.allocatedBytes <= 50_000 * 24)
        for record in UInt32(0)..<50_000 where record % 100 != 0 {
            index.remove(key(record), record)
        }
        #expect(index.count == 500)
        for record in UInt32(0)..<50_000 {
            let found = index.find(key(record)) { $0 == record }
            #expect(found == (record % 100 == 0 ? record : nil))
        }
        #expect(index.allocatedBytes < 50_000)
    }

    @Test("no insertion moves more than a table's records, however many there are")
    func growsInSteps() {
        let hash = KeyedHash(seed: 3)
        var index = HashIndex()
        var most = 0
        for record in UInt32(0)..<100_000 {
            let before = index.allocatedBytes
            index.insert(withUnsafeBytes(of: record) { hash($0) }, record)
            most = max(most, index.allocatedBytes - before)
        }
        #expect(most <= 512 * 8)
    }

    @Test("gives its memory back when it has become nearly empty")
    func shrinks() {
        var index = HashIndex()
        for record in UInt32(0)..<10_000 { index.insert(UInt64(record) &* 0x9E37_79B9, record) }
        let full = index.allocatedBytes
        #expect(full >= 10_000 * 8)
        for record in UInt32(0)..<9_990 { index.remove(UInt64(record) &* 0x9E37_79B9, record) }
        #expect(index.count == 10)
        #expect(index.allocatedBytes < full / 64)
        for record in UInt32(9_990)..<10_000 {
            #expect(index.find(UInt64(record) &* 0x9E37_79B9) { $0 == record } == record)
        }
    }

    @Test("finds nothing in an empty table")
    func empty() {
        let index = HashIndex()
        #expect(index.find(0) { _ in true } == nil)
        #expect(index.find(.max) { _ in true } == nil)
        #expect(index.count == 0)
    }
}

@Suite("Keyed hash")
struct KeyedHashTests {
    @Test("depends on every byte, the length, the salt and the secret")
    func dependence() {
        let hash = KeyedHash(seed: 1)
        var seen: Set<UInt64> = []
        var inputs = 0
        for count in 0...40 {
            let bytes = [UInt8](repeating: 0, count: count)
            inputs += 1
            bytes.withUnsafeBytes { _ = seen.insert(hash($0)) }
            for position in 0..<count {
                var changed = bytes
                changed[position] = 1
                inputs += 1
                changed.withUnsafeBytes { _ = seen.insert(hash($0)) }
            }
        }
        #expect(seen.count == inputs)
        [UInt8]("orders/1".utf8).withUnsafeBytes { bytes in
            #expect(hash(bytes) == KeyedHash(seed: 1)(bytes))
            #expect(hash(bytes) != KeyedHash(seed: 2)(bytes))
            #expect(hash(bytes) != hash(bytes, salt: 1))
            #expect(hash(bytes, salt: 1) != hash(bytes, salt: 2))
        }
    }

    @Test("does not depend on where the bytes stand")
    func alignment() {
        let hash = KeyedHash(seed: 3)
        let text = [UInt8]("a/topic/of/some/length".utf8)
        let expected = text.withUnsafeBytes { hash($0) }
        for offset in 0..<9 {
            let moved = [UInt8](repeating: 0xEE, count: offset) + text
            moved.withUnsafeBytes {
                #expect(hash(UnsafeRawBufferPointer(rebasing: $0[offset...])) == expected)
            }
        }
    }

    @Test("spreads numbered topics over the low bits")
    func spread() {
        let hash = KeyedHash(seed: 4)
        var buckets = [Int](repeating: 0, count: 256)
        for number in 0..<25_600 {
            Array("orders/\(number)/status".utf8).withUnsafeBytes {
                buckets[Int(hash($0) & 255)] += 1
            }
        }
        // 100 each on average, with a standard deviation of 10.
        #expect(buckets.allSatisfy { (50...150).contains($0) })
    }
}
