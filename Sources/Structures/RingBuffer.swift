/// A queue of trivial values that grows by doubling and keeps its memory.
public struct RingBuffer<Element: BitwiseCopyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private var first = 0
    public private(set) var count = 0

    public init() {
        capacity = 16
        base = .allocate(capacity: capacity)
    }

    deinit { base.deallocate() }

    public subscript(index: Int) -> Element {
        get {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            return base[(first + index) & (capacity - 1)]
        }
        set {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            base[(first + index) & (capacity - 1)] = newValue
        }
    }

    public mutating func append(_ element: Element) {
        if count == capacity {
            let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
            for index in 0..<count { (larger + index).initialize(to: self[index]) }
            base.deallocate()
            base = larger
            capacity *= 2
            first = 0
        }
        (base + ((first + count) & (capacity - 1))).initialize(to: element)
        count += 1
    }

    /// Removes the first value and returns it; `nil` when there is none.
    public mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = base[first]
        removeFirst()
        return element
    }

    public mutating func removeFirst() {
        precondition(count > 0, "nothing to remove")
        first = (first + 1) & (capacity - 1)
        count -= 1
    }
}
