import HermesTesting
import Testing

@testable import Structures

@Suite("Byte pool")
struct BytePoolTests {
    @Test("gives at least the requested size, in ascending classes")
    func classes() {
        var last = (index: 0, capacity: 0)
        for count in 0...70_000 {
            let index = BytePool.classIndex(for: count)
            let capacity = BytePool.capacity(for: count)
            #expect(capacity >= count)
            #expect(capacity >= 16 && capacity >= last.capacity)
            #expect(index >= last.index && index <= last.index + 1)
            // No class wastes more than half of the requested size.
            if count > 16 { #expect(capacity * 2 <= count * 3 + 2, "\(count) in \(capacity)") }
            if count <= 65_536 {
                #expect(index < BytePool.classCount)
                #expect(BytePool.capacity(ofClass: index) == capacity)
                // A class's capacity belongs to that class.
                #expect(BytePool.classIndex(for: capacity) == index)
            } else {
                #expect(index >= BytePool.classCount && capacity == count)
            }
            last = (index, capacity)
        }
        #expect(BytePool.capacity(ofClass: BytePool.classCount - 1) == 65_536)
    }

    @Test("never hands out the same byte twice", arguments: UInt64(1)...16)
    func noOverlap(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var live: [(buffer: UnsafeMutableRawPointer, count: Int, mark: UInt8)] = []
        for step in 0..<1_500 {
            if live.count > 60 || (!live.isEmpty && random.once(in: 2)) {
                let index = random.number(in: 0...live.count - 1)
                let (buffer, count, mark) = live.remove(at: index)
                expectFilled(
                    buffer, BytePool.capacity(for: count), mark, "seed \(seed), step \(step)")
                owner.pool.deallocate(buffer, count: count)
            } else {
                let count = randomCount(&random)
                let buffer = owner.pool.allocate(count)
                #expect(UInt(bitPattern: buffer) % 8 == 0, "\(count) bytes at \(buffer)")
                let mark = UInt8(truncatingIfNeeded: step)
                memset(buffer, mark, BytePool.capacity(for: count))
                live.append((buffer, count, mark))
            }
        }
        let ranges = live.map {
            UInt(bitPattern: $0.buffer)..<UInt(bitPattern: $0.buffer)
                + UInt(BytePool.capacity(for: $0.count))
        }.sorted { $0.lowerBound < $1.lowerBound }
        for (range, next) in zip(ranges, ranges.dropFirst()) {
            #expect(range.upperBound <= next.lowerBound, "replay with seed \(seed)")
        }
        for (buffer, count, mark) in live {
            expectFilled(buffer, BytePool.capacity(for: count), mark, "seed \(seed), at the end")
            owner.pool.deallocate(buffer, count: count)
        }
    }

    @Test("takes no new memory once it is warm", arguments: [16, 100, 2_048, 2_049, 60_000])
    func recycles(count: Int) {
        let owner = TestPool()
        var seen: Set<UnsafeMutableRawPointer> = []
        for round in 0..<5 {
            let buffers = (0..<30).map { _ in owner.pool.allocate(count) }
            if round == 0 { seen = Set(buffers) }
            #expect(Set(buffers) == seen, "round \(round)")
            for buffer in buffers { owner.pool.deallocate(buffer, count: count) }
        }
    }

    @Test("carves one page for all buffers that fit it, and no more")
    func carving() {
        let owner = TestPool()
        let first = owner.pool.allocate(2_048)
        // 16 bytes link the pages, followed by seven buffers of 2,048 bytes.
        #expect(owner.pool.classes[BytePool.classIndex(for: 2_048)].freeCount == 6)
        owner.pool.deallocate(first, count: 2_048)
        #expect(owner.pool.classes[BytePool.classIndex(for: 2_048)].freeCount == 7)
    }

    @Test("keeps a bounded number of large buffers")
    func bound() {
        let owner = TestPool()
        let index = BytePool.classIndex(for: 65_536)
        let buffers = (0..<40).map { _ in owner.pool.allocate(65_536) }
        for buffer in buffers { owner.pool.deallocate(buffer, count: 65_536) }
        // 2 MiB of each class.
        #expect(owner.pool.classes[index].freeCount == 32)
    }

    private func randomCount(_ random: inout SplitMix64) -> Int {
        switch random.number(in: 0...3) {
        case 0: random.number(in: 1...64)
        case 1: random.number(in: 1...2_048)
        case 2: random.pick([16, 17, 24, 25, 48, 2_048, 2_049, 65_536, 65_537])
        default: random.number(in: 1...9_000)
        }
    }

    private func memset(_ buffer: UnsafeMutableRawPointer, _ value: UInt8, _ count: Int) {
        buffer.initializeMemory(as: UInt8.self, repeating: value, count: count)
    }

    private func expectFilled(
        _ buffer: UnsafeMutableRawPointer, _ count: Int, _ mark: UInt8, _ comment: Comment
    ) {
        let bytes = UnsafeRawBufferPointer(start: buffer, count: count)
        if let wrong = bytes.firstIndex(where: { $0 != mark }) {
            Issue.record("byte \(wrong) of \(count) changed: \(comment)")
        }
    }
}
