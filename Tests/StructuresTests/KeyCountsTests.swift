import HermesTesting
import Testing

@testable import Structures

@Suite("Key counts")
struct KeyCountsTests {
    @Test("agree with a dictionary", arguments: [UInt32(1), 64, 0x9E37_79B9], UInt64(1)...4)
    func model(step: UInt32, seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var counts = KeyCounts()
        var model: [UInt32: Int] = [:]
        for round in 0..<6_000 {
            // Grows, then shrinks again.
            let grows = round < 3_000
            let key = max(1, UInt32.random(in: 1...700, using: &random) &* step)
            if random.once(in: grows ? 4 : 2) || !grows, let known = model[key] {
                counts.remove(key)
                model[key] = known == 1 ? nil : known - 1
            } else if grows {
                counts.add(key)
                model[key, default: 0] += 1
            }
            #expect(counts[key] == model[key] ?? 0)
        }
        #expect(counts.keyCount == model.count)
        for (key, count) in model { #expect(counts[key] == count) }
    }

    @Test("hold nothing for removed keys, however many there were")
    func bounded() {
        var counts = KeyCounts()
        let empty = counts.allocatedBytes
        // Spread over the tables, as a hash spreads them.
        let keys = (1...UInt32(100_000)).map { $0 &* 0x9E37_79B9 }
        for key in keys {
            counts.add(key)
            counts.remove(key)
        }
        #expect(counts.allocatedBytes == empty)
        for key in keys { counts.add(key) }
        #expect(counts.allocatedBytes <= 100_000 * 8 * 8 / 3)
        for key in keys { counts.remove(key) }
        #expect(counts.keyCount == 0 && counts.allocatedBytes == empty)
    }
}
