import HermesTesting
import Testing

@testable import Structures

@Suite("Slab")
struct SlabTests {
    @Test("agrees with a dictionary", arguments: UInt64(1)...8)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var slab = Slab<UInt64>()
        var records: [UInt32: UInt64] = [:]
        for step in 0..<5_000 {
            if random.once(in: 3), let index = records.keys.randomElement(using: &random) {
                slab.remove(index)
                records[index] = nil
            } else if random.once(in: 4), let index = records.keys.randomElement(using: &random) {
                slab[index] = UInt64(step)
                records[index] = UInt64(step)
            } else {
                let index = slab.insert(UInt64(step))
                #expect(records[index] == nil, "index \(index) was in use, seed \(seed)")
                records[index] = UInt64(step)
            }
            #expect(slab.count == records.count)
        }
        #expect(records.allSatisfy { slab[$0.key] == $0.value }, "replay with seed \(seed)")
        // Freed indices are reused before new ones.
        #expect(Int(slab.endIndex) < 5_000)
    }

    @Test("never moves a record while it grows")
    func addresses() {
        var slab = Slab<UInt64>()
        let first = slab.insert(1)
        let address = withUnsafePointer(to: &slab[first]) { UInt(bitPattern: $0) }
        for value in UInt64(2)...10_000 { _ = slab.insert(value) }
        #expect(withUnsafePointer(to: &slab[first]) { UInt(bitPattern: $0) } == address)
        #expect((UInt32(0)..<10_000).allSatisfy { slab[$0] == UInt64($0) + 1 })
        #expect(slab.allocatedBytes == 40 * 256 * 8)
    }

    @Test("places a record at an index that another slab handed out")
    func place() {
        var slab = Slab<UInt32>()
        slab.place(7, at: 600)
        #expect(slab.endIndex == 601)
        #expect(slab[600] == 7)
        slab.place(8, at: 3)
        #expect(slab.endIndex == 601)
        #expect(slab[3] == 8 && slab[600] == 7)
    }

    @Test("a handle keeps index and generation in 64 bits")
    func handles() {
        for index in [0, 1, UInt32.max] {
            for generation in [0, 1, UInt32.max >> 1, UInt32.max] {
                let handle = Handle(index: index, generation: generation)
                #expect(Handle(packed: handle.packed) == handle)
            }
        }
        #expect(Handle(index: 2, generation: 1).packed == 0x1_0000_0002)
    }
}

@Suite("Buffers of trivial values")
struct GrowableBufferTests {
    @Test("a growable buffer is a stack")
    func growable() {
        var buffer = GrowableBuffer<Int>()
        #expect(buffer.count == 0)
        #expect(buffer.popLast() == nil)
        for value in 0..<1_000 { buffer.append(value) }
        #expect(buffer.count == 1_000)
        #expect(Array(buffer.contents) == Array(0..<1_000))
        buffer[17] = -1
        #expect(buffer[17] == -1)
        #expect(buffer.popLast() == 999)
        #expect(buffer.count == 999)
        buffer.removeAll()
        #expect(buffer.isEmpty && buffer.popLast() == nil)
        buffer.append(5)
        #expect(Array(buffer.contents) == [5])
    }

    @Test("a ring is a queue, wherever it begins", arguments: UInt64(1)...8)
    func ring(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var ring = RingBuffer<Int>()
        var model: [Int] = []
        for step in 0..<3_000 {
            switch random.number(in: 0...(step < 1_500 ? 4 : 7)) {
            case 0...2:
                ring.append(step)
                model.append(step)
            case 3 where !model.isEmpty:
                let index = random.number(in: 0...model.count - 1)
                ring[index] = -step
                model[index] = -step
            default:
                guard !model.isEmpty else { continue }
                ring.removeFirst()
                model.removeFirst()
            }
            #expect(ring.count == model.count)
            if let first = model.first, let last = model.last {
                #expect(ring[0] == first && ring[model.count - 1] == last, "seed \(seed)")
            }
        }
        #expect(model.indices.allSatisfy { ring[$0] == model[$0] }, "replay with seed \(seed)")
    }
}
