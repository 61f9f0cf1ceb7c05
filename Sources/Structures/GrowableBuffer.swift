/// A stack of trivial values for reuse between calls: no reference counting and no copy on write.
public struct GrowableBuffer<Element: BitwiseCopyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    public private(set) var count = 0

    public init() {
        capacity = 16
        base = .allocate(capacity: capacity)
    }

    deinit { base.deallocate() }

    public var isEmpty: Bool { count == 0 }

    /// The values, oldest first; the pointer is valid until the next change.
    public var contents: UnsafeBufferPointer<Element> {
        UnsafeBufferPointer(start: base, count: count)
    }

    /// The values, to be changed in place; the pointer is valid until the next change.
    public var mutableContents: UnsafeMutableBufferPointer<Element> {
        UnsafeMutableBufferPointer(start: base, count: count)
    }

    public subscript(index: Int) -> Element {
        get {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            return base[index]
        }
        set {
            precondition(index >= 0 && index < count, "value \(index) of \(count)")
            base[index] = newValue
        }
    }

    public mutating func append(_ element: Element) {
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

    public mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return base[count]
    }

    public mutating func removeAll() { count = 0 }
}
