/// What is due, in the order of time, and of adding at one time: a binary heap.
struct Schedule<Value> {
    private struct Entry {
        var at: Int64
        var order: Int
        var value: Value

        func precedes(_ other: Entry) -> Bool { (at, order) < (other.at, other.order) }
    }

    private var heap: [Entry] = []
    private var nextOrder = 0

    mutating func add(_ value: Value, at: Int64) {
        heap.append(Entry(at: at, order: nextOrder, value: value))
        nextOrder += 1
        var child = heap.count - 1
        while child > 0, heap[child].precedes(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Takes out what comes first, unless it is due after `end`.
    mutating func next(until end: Int64) -> (at: Int64, value: Value)? {
        guard let first = heap.first, first.at <= end else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].precedes(heap[least]) {
                least = child
            }
            if least == parent { return (first.at, first.value) }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
