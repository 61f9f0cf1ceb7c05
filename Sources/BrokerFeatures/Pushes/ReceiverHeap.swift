import BrokerCore
import Structures

/// The clients that a push comes to next, in the order of their hashes.
///
/// A binary heap, the lowest hash first. A walk over the tagged clients fills it; when it is full, it
/// keeps the clients in front of a bound, and a later walk finds those behind.
struct ReceiverHeap {
    struct Entry: BitwiseCopyable {
        /// Hash of the client identifier; below 2^63.
        let hash: UInt64
        /// The place in ``TaggedClients``.
        let place: UInt32
    }

    /// One more than the highest hash.
    static var end: UInt64 { 1 << 63 }

    private var heap: [Entry] = []
    /// Clients with this hash or a higher one are left to a later walk.
    private(set) var bound = Self.end

    /// The hash by which a push orders its clients.
    static func hash(_ identifier: UnsafeRawBufferPointer, _ order: KeyedHash) -> UInt64 {
        order(identifier) >> 1
    }

    var isEmpty: Bool { heap.isEmpty }
    var first: Entry? { heap.first }

    /// Adds a client; with `most` clients, those of the upper half of hashes leave first.
    mutating func insert(_ entry: Entry, from cursor: UInt64, most: Int) {
        while heap.count >= most, bound - cursor > 1 {
            bound = cursor + (bound - cursor) / 2
            let kept = heap.filter { $0.hash < bound }
            heap.removeAll(keepingCapacity: true)
            for entry in kept { append(entry) }
        }
        if entry.hash < bound { append(entry) }
    }

    private mutating func append(_ entry: Entry) {
        heap.append(entry)
        var index = heap.count - 1
        while index > 0, heap[index].hash < heap[(index - 1) / 2].hash {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popFirst() -> Entry? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var index = 0
        while true {
            var least = index
            for child in 2 * index + 1...2 * index + 2
            where child < heap.count && heap[child].hash < heap[least].hash {
                least = child
            }
            guard least != index else { return first }
            heap.swapAt(index, least)
            index = least
        }
    }
}
