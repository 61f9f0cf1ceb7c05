/// A stack of trivial values for reuse between calls: no reference counting and no copy on write.
package struct GrowableBuffer<Element: BitwiseCopyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    package private(set) var count = 0

    package init() {
        capacity = 16
        base = .allocate(capacity: capacity)
    }

    deinit { base.deallocate() }

    package var isEmpty: Bool { count == 0 }

    /// The values; valid until the next change.
    package var contents: UnsafeBufferPointer<Element> {
        UnsafeBufferPointer(start: base, count: count)
    }

    package subscript(index: Int) -> Element {
        get {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            return base[index]
        }
        set {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            base[index] = newValue
        }
    }

    package mutating func append(_ element: Element) {
        if count == capacity {
            let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
            larger.update(from: base, count: count)
            base.deallocate()
            base = larger
            capacity *= 2
        }
        (base + count).initialize(to: element)
        count += 1
    }

    package mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return base[count]
    }

    package mutating func removeAll() { count = 0 }
}
