import HermesTesting
import Testing

@testable import Structures

@Suite("Expiry wheel")
struct ExpiryWheelTests {
    private static let start: Int64 = 1_700_000_000_000

    /// A wheel with a model: the time of each entry that is in use, by place.
    private struct Model: ~Copyable {
        var wheel: ExpiryWheel
        var dueMs: [UInt32: Int64] = [:]
        var now = ExpiryWheelTests.start
        var last: UInt32 = 0
        /// Entries that came out and were of no use.
        var useless = 0

        init() { wheel = ExpiryWheel(atMs: now, pool: BytePool()) }

        mutating func add(in milliseconds: Int64) {
            last += 1
            wheel.add(ExpiryWheel.Entry(place: last), atMs: now + milliseconds)
            dueMs[last] = now + milliseconds
        }

        /// Takes all that comes out now; returns what was due, and puts back what is in use.
        mutating func sweep(most: Int = .max) -> [UInt32] {
            var due: [UInt32] = []
            var left = most
            while left > 0 {
                left -= 1
                switch wheel.next(atMs: now) {
                case .due(let entry):
                    if dueMs[entry.place] == nil { useless += 1 } else { due.append(entry.place) }
                case .moved(let entry):
                    if dueMs[entry.place] == nil { useless += 1 } else { wheel.putBack(entry) }
                case .early: continue
                case .nothing: return due
                }
            }
            return due
        }

        /// The same to the millisecond.
        mutating func exactSweep() -> [UInt32] {
            var due: [UInt32] = []
            while true {
                switch wheel.next(atMs: now, isExact: true) {
                case .due(let entry): due.append(entry.place)
                case .moved(let entry): wheel.putBack(entry)
                case .early: continue
                case .nothing:
                    wheel.restoreEarly()
                    return due
                }
            }
        }
    }

    @Test(
        "each entry comes out once, never early and at most 64 ms late", arguments: UInt64(1)...24)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var model = Model()
        for step in 0..<600 {
            switch random.number(in: 0...9) {
            case 0...4:
                for _ in 0..<random.number(in: 1...40) {
                    let bits = random.number(in: 0...34)
                    model.add(in: Int64(random.number(in: 0...(1 << bits))) - 3)
                }
            case 5:
                // Some are of no use any more.
                for place in model.dueMs.keys where random.once(in: 3) { model.dueMs[place] = nil }
            default:
                let bits = random.number(in: 0...33)
                model.now += Int64(random.number(in: 0...(1 << bits)))
            }
            let most = random.once(in: 2) ? random.number(in: 1...50) : Int.max
            let due = model.sweep(most: most)
            for place in due {
                let dueMs = model.dueMs.removeValue(forKey: place)
                #expect(dueMs.map { $0 <= model.now } == true, "seed \(seed), step \(step)")
            }
            guard most == .max else { continue }
            let late = model.dueMs.values.filter { $0 + 64 <= model.now }
            #expect(late.isEmpty, "seed \(seed), step \(step)")
            let nextMs = model.wheel.nextMs(atMs: model.now)
            let first = model.dueMs.values.min()
            if let first { #expect(nextMs.map { $0 < first + 64 } == true) }
        }
        while let last = model.dueMs.values.max() {
            model.now = max(model.now, last + 64)
            for place in model.sweep() { model.dueMs[place] = nil }
        }
        // What is left is of no use, and comes out in its time.
        model.now += 1 << 35
        let last = model.sweep()
        let count = model.wheel.count
        #expect(last.isEmpty && count == 0)
    }

    @Test("an exact sweep is to the millisecond, and loses nothing", arguments: UInt64(1)...8)
    func exact(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var model = Model()
        for _ in 0..<2_000 {
            for _ in 0..<random.number(in: 0...5) {
                model.add(in: Int64(random.number(in: 0...303)) - 3)
            }
            model.now += Int64(random.number(in: 0...40))
            // An ordinary one between leaves what is late.
            if random.once(in: 4) {
                for place in model.sweep() { model.dueMs[place] = nil }
            }
            let due = model.exactSweep()
            for place in due {
                let dueMs = model.dueMs.removeValue(forKey: place)
                #expect(dueMs.map { $0 <= model.now } == true)
            }
            #expect(model.dueMs.values.allSatisfy { $0 > model.now })
        }
        model.now += 301
        let rest = model.exactSweep()
        let left = model.wheel.count
        #expect(rest.count == model.dueMs.count && left == 0)
    }

    @Test("bytes are kept beside the time")
    func bytes() {
        var model = Model()
        for bytes in [0, 1, 65_535, 1 << 26 - 1, 1 << 28] {
            model.wheel.add(ExpiryWheel.Entry(place: 1, bytes: bytes), atMs: model.now + 63)
            model.now += 64
            guard case .due(let entry) = model.wheel.next(atMs: model.now + 64) else {
                Issue.record("\(bytes) did not come out")
                return
            }
            #expect(entry.bytes == min(bytes, 1 << 26 - 1))
        }
    }

    @Test("entries of no use are at most as many as those in use, and 4,096")
    func tidied() {
        var model = Model()
        for _ in 0..<3_000 { model.add(in: 86_400_000) }
        var most = 0
        for _ in 0..<200_000 {
            model.add(in: 3_600_000)
            // It was acknowledged at once.
            model.dueMs[model.last] = nil
            _ = model.sweep(most: 8)
            most = max(most, model.wheel.count)
        }
        // While they are looked at, further ones come, and count as in use.
        #expect(most < 2 * (3_000 + 2_000) + ExpiryWheel.leastTidied, "\(most)")
        _ = model.sweep()
        let left = model.wheel.count
        #expect(left >= 3_000 && left < 3_000 + ExpiryWheel.leastTidied + 3_000)
        model.now += 86_400_064
        let due = model.sweep()
        #expect(due.count == 3_000)
    }

    @Test("a clock that is set changes the order of nothing and loses nothing")
    func setClock() {
        var model = Model()
        for number in 0..<1_000 as Range<Int64> { model.add(in: number * 60_000) }
        model.now += 600_000
        for place in model.sweep() { model.dueMs[place] = nil }
        let left = model.dueMs.count
        #expect(left == 989)
        // Back by an hour, and by five years.
        for back in [3_600_000, 5 * 365 * 86_400_000] as [Int64] {
            model.now -= back
            let early = model.sweep()
            #expect(early.isEmpty)
        }
        let kept = model.wheel.count
        #expect(kept == 989)
        model.now += 3_600_000 + 5 * 365 * 86_400_000
        let same = model.sweep()
        #expect(same.isEmpty)
        // Forward by thirty years: all of it is over.
        model.now += 30 * 365 * 86_400_000
        let all = model.sweep()
        #expect(all.count == 989)
    }

    @Test("a clock that goes back by more than the wheel holds ends nothing early")
    func farBack() {
        var model = Model()
        model.add(in: 60_000)
        model.now -= 10 * 365 * 86_400_000
        let early = model.sweep()
        model.now += 10 * 365 * 86_400_000
        let late = model.sweep()
        #expect(early.isEmpty && late.isEmpty)
    }

    @Test("a time beyond seven years is left out")
    func farAway() {
        var model = Model()
        model.add(in: 7 * 365 * 86_400_000)
        model.add(in: 9 * 365 * 86_400_000)
        let count = model.wheel.count
        #expect(count == 1)
    }

    @Test("20 bytes an entry, and little more")
    func memory() {
        let pool = BytePool()
        var wheel = ExpiryWheel(atMs: Self.start, pool: pool)
        let before = pool.bytesInUse
        for place in 0..<100_000 as Range<UInt32> {
            wheel.add(ExpiryWheel.Entry(place: place), atMs: Self.start + Int64(place) * 100)
        }
        let each = Double(pool.bytesInUse - before) / 100_000
        #expect(each < 23, "\(each) bytes an entry")
        wheel.removeAll()
        let left = pool.bytesInUse
        #expect(left == before)
    }
}
