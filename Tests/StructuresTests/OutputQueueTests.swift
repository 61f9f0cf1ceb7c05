import HermesTesting
import Testing

@testable import Structures

@Suite("Output queue")
struct OutputQueueTests {
    @Test("agrees with an array of bytes", arguments: UInt64(1)...24)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var queue = OutputQueue()
        var model: [UInt8] = []
        for step in 0..<800 {
            switch random.number(in: 0...9) {
            case 0...3:
                let bytes = random.bytes(random.number(in: 1...60))
                bytes.withUnsafeBytes { queue.append($0, pool: owner.pool) }
                model += bytes
            case 4:
                let bytes = random.bytes(random.pick([1, 383, 384, 385, 5_000, 66_000]))
                bytes.withUnsafeBytes { queue.append($0, pool: owner.pool) }
                model += bytes
            case 5:
                // Space that the caller fills in place.
                let count = random.number(in: 1...30)
                let room = queue.append(count, pool: owner.pool)
                room.initializeMemory(as: UInt8.self, repeating: UInt8(step & 0xFF), count: count)
                model += [UInt8](repeating: UInt8(step & 0xFF), count: count)
            case 6:
                let bytes = random.bytes(random.number(in: 1...20_000))
                let shared = SharedBytes(count: bytes.count, pool: owner.pool)
                shared.bytes.copyMemory(from: bytes, byteCount: bytes.count)
                let offset = random.number(in: 0...bytes.count - 1)
                let count = random.number(in: 1...bytes.count - offset)
                queue.append(shared, offset: offset, count: count, pool: owner.pool)
                shared.release(in: owner.pool)
                model += bytes[offset..<offset + count]
            case 7 where random.once(in: 3):
                // The header of a frame.
                let bytes = random.bytes(random.pick([1, 2, 4, 10]))
                queue.prepend(bytes.count, pool: owner.pool)
                    .copyMemory(from: bytes, byteCount: bytes.count)
                model = bytes + model
            case 7 where random.once(in: 14):
                queue.removeAll(in: owner.pool)
                model.removeAll()
            default:
                let count = random.once(in: 6) ? model.count : random.number(in: 0...model.count)
                queue.consume(count, pool: owner.pool)
                model.removeFirst(count)
            }
            #expect(queue.count == model.count && queue.isEmpty == model.isEmpty)
            if step % 10 == 0 {
                #expect(unsent(queue) == model, "replay with seed \(seed), step \(step)")
            }
        }
        #expect(unsent(queue) == model, "replay with seed \(seed)")
        queue.removeAll(in: owner.pool)
        #expect(queue.isEmpty && queue.head == nil && queue.tail == nil)
    }

    @Test("what is put before the bytes of one chunk stands in it, up to 4 bytes")
    func prepending() {
        let owner = TestPool()
        var queue = OutputQueue()
        func put(_ bytes: [UInt8]) {
            queue.prepend(bytes.count, pool: owner.pool)
                .copyMemory(from: bytes, byteCount: bytes.count)
        }
        ([9, 9] as [UInt8]).withUnsafeBytes { queue.append($0, pool: owner.pool) }
        let chunk = queue.head
        put([7, 8])
        put([5, 6])
        #expect(queue.head == chunk)
        put([4])
        #expect(queue.head != chunk)
        #expect(unsent(queue) == [4, 5, 6, 7, 8, 9, 9])
        queue.consume(3, pool: owner.pool)
        put([1, 2])
        #expect(queue.head == chunk)
        queue.removeAll(in: owner.pool)
        // An empty one.
        put([1])
        #expect(unsent(queue) == [1])
        queue.consume(1, pool: owner.pool)
        #expect(queue.isEmpty && queue.head == nil && queue.tail == nil)
    }

    @Test("an empty queue holds no chunk")
    func empty() {
        let owner = TestPool()
        var queue = OutputQueue()
        queue.consume(0, pool: owner.pool)
        [1, 2, 3].withUnsafeBytes { queue.append($0, pool: owner.pool) }
        #expect(queue.head != nil)
        queue.consume(queue.count, pool: owner.pool)
        #expect(queue.isEmpty && queue.head == nil && queue.tail == nil)
        queue.append(UnsafeRawBufferPointer(start: nil, count: 0), pool: owner.pool)
        #expect(queue.head == nil)
    }

    @Test("shared bytes live until the last queue has sent them")
    func references() {
        let owner = TestPool()
        let shared = SharedBytes(count: 20_000, pool: owner.pool)
        shared.bytes.initializeMemory(as: UInt8.self, repeating: 0x5A, count: 20_000)
        var queues = [OutputQueue](repeating: OutputQueue(), count: 3)
        for index in queues.indices {
            queues[index].append(shared, offset: index, count: 19_990, pool: owner.pool)
        }
        #expect(references(shared) == 4)
        shared.release(in: owner.pool)
        queues[0].consume(19_989, pool: owner.pool)
        #expect(references(shared) == 3, "one byte is unsent")
        queues[0].consume(1, pool: owner.pool)
        #expect(references(shared) == 2)
        queues[1].removeAll(in: owner.pool)
        #expect(references(shared) == 1)
        #expect(unsent(queues[2]) == [UInt8](repeating: 0x5A, count: 19_990))
        let index = BytePool.classIndex(for: 20_008)
        #expect(owner.pool.classes[index].freeCount == 0)
        queues[2].consume(19_990, pool: owner.pool)
        #expect(owner.pool.classes[index].freeCount == 1)
    }

    @Test("small packets share a chunk; a chunk after many bytes is a large one")
    func chunks() {
        let owner = TestPool()
        var queue = OutputQueue()
        for value in 0..<50 {
            [UInt8(value), 0, 0, 0].withUnsafeBytes { queue.append($0, pool: owner.pool) }
        }
        #expect(segments(queue).count == 1)
        for _ in 0..<1_000 {
            [UInt8](repeating: 7, count: 100).withUnsafeBytes { queue.append($0, pool: owner.pool) }
        }
        // 100 KB in chunks that double.
        #expect(segments(queue).count <= 10)
        queue.removeAll(in: owner.pool)
    }

    @Test("describes no more runs than it is asked for")
    func fill() {
        let owner = TestPool()
        var queue = OutputQueue()
        let shared = SharedBytes(count: 10, pool: owner.pool)
        for offset in 0..<10 { queue.append(shared, offset: offset, count: 1, pool: owner.pool) }
        var room = [OutputQueue.Segment](repeating: OutputQueue.Segment(), count: 4)
        #expect(room.withUnsafeMutableBufferPointer { fill(queue, $0) } == 4)
        #expect(room.allSatisfy { $0.count == 1 })
        queue.consume(8, pool: owner.pool)
        #expect(room.withUnsafeMutableBufferPointer { fill(queue, $0) } == 2)
        #expect(room[0].base == shared.bytes + 8)
        queue.removeAll(in: owner.pool)
        #expect(room.withUnsafeMutableBufferPointer { fill(queue, $0) } == 0)
        shared.release(in: owner.pool)
    }

    // MARK: Looking inside

    private func fill(
        _ queue: OutputQueue, _ room: UnsafeMutableBufferPointer<OutputQueue.Segment>
    ) -> Int {
        guard let base = room.baseAddress else { return 0 }
        return queue.fill(base, capacity: room.count)
    }

    private func segments(_ queue: OutputQueue) -> [OutputQueue.Segment] {
        var room = [OutputQueue.Segment](repeating: OutputQueue.Segment(), count: 2_000)
        let count = room.withUnsafeMutableBufferPointer { fill(queue, $0) }
        return Array(room[..<count])
    }

    private func unsent(_ queue: OutputQueue) -> [UInt8] {
        segments(queue).flatMap { [UInt8](UnsafeRawBufferPointer(start: $0.base, count: $0.count)) }
    }

    private func references(_ shared: SharedBytes) -> UInt32 {
        shared.pointer.load(as: SharedBytes.Header.self).references
    }
}
