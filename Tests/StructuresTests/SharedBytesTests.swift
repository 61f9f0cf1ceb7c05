import HermesTesting
import Testing

@testable import Structures

@Suite("Shared bytes")
struct SharedBytesTests {
    @Test("hold their bytes, 8-byte aligned", arguments: [1, 8, 16, 2_048, 70_000])
    func content(count: Int) {
        let owner = TestPool()
        var random = SplitMix64(seed: UInt64(count))
        let bytes = random.bytes(count)
        let shared = SharedBytes(count: count, pool: owner.pool)
        shared.bytes.copyMemory(from: bytes, byteCount: count)
        #expect(shared.count == count)
        #expect(UInt(bitPattern: shared.bytes) % 8 == 0)
        #expect([UInt8](UnsafeRawBufferPointer(start: shared.bytes, count: shared.count)) == bytes)
        shared.release(in: owner.pool)
    }

    @Test("go back to the pool with the last reference")
    func references() {
        let owner = TestPool()
        let index = BytePool.classIndex(for: 5_008)
        let shared = SharedBytes(count: 5_000, pool: owner.pool)
        for _ in 0..<3 { shared.retain() }
        for _ in 0..<3 { shared.release(in: owner.pool) }
        #expect(owner.pool.classes[index].freeCount == 0)
        shared.release(in: owner.pool)
        #expect(owner.pool.classes[index].freeCount == 1)
    }

    @Test("trap when they are released once too often", arguments: [20, 5_000])
    func releasedTwice(count: Int) async {
        await #expect(processExitsWith: .failure) { [count] in
            let pool = BytePool()
            // Another free buffer, so that this one is not last in the free list.
            let other = SharedBytes(count: count, pool: pool)
            let shared = SharedBytes(count: count, pool: pool)
            other.release(in: pool)
            shared.release(in: pool)
            shared.release(in: pool)
        }
    }
}
