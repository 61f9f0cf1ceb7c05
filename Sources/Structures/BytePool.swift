/// Byte buffers in size classes, recycled: the packet path allocates nothing once it is warm.
///
/// A handle to state that its shard owns: copying it copies a pointer, nothing is counted, and
/// everything that it hands out belongs to one thread. Small classes are carved from pages without
/// a header per buffer; large ones come from malloc and a bounded number of them is kept.
/// The classes are 16, 24, 32, 48, 64, 96, … 64 KiB; above that malloc serves exactly.
public struct BytePool: BitwiseCopyable {
    static var classCount: Int { 25 }
    /// Largest class carved from pages.
    private static var largestCarved: Int {
        #if HERMES_UNPOOLED
            // Every buffer from malloc and back to it, so that AddressSanitizer watches each.
            0
        #else
            2_048
        #endif
    }
    private static var pageBytes: Int { 16 * 1_024 }
    /// Free bytes kept per class above ``largestCarved``.
    private static var keptBytes: Int { 2 * 1_024 * 1_024 }
    /// Where a free buffer names the next one: behind the eight bytes in which ``SharedBytes``
    /// counts, so that a second release still finds its zero and traps.
    private static var linkOffset: Int { 8 }

    struct SizeClass {
        var free: UnsafeMutableRawPointer?
        var freeCount = 0
    }

    /// What is touched only where memory is fetched or given back, which a warm packet path never does.
    private struct Ledger {
        var pages: UnsafeMutableRawPointer?
        /// Per class, the buffers that exist, free ones included; last, the bytes of those served exactly.
        let existing: UnsafeMutablePointer<Int>
    }

    let classes: UnsafeMutablePointer<SizeClass>
    private let ledger: UnsafeMutablePointer<Ledger>

    public init() {
        classes = .allocate(capacity: Self.classCount)
        classes.initialize(repeating: SizeClass(), count: Self.classCount)
        let existing = UnsafeMutablePointer<Int>.allocate(capacity: Self.classCount + 1)
        existing.initialize(repeating: 0, count: Self.classCount + 1)
        ledger = .allocate(capacity: 1)
        ledger.initialize(to: Ledger(pages: nil, existing: existing))
    }

    /// Frees everything; no buffer of this pool may be in use.
    public func destroy() {
        for index in 0..<Self.classCount where Self.capacity(ofClass: index) > Self.largestCarved {
            while let buffer = pop(index) { buffer.deallocate() }
        }
        var page = ledger.pointee.pages
        while let current = page {
            page = current.load(as: UnsafeMutableRawPointer?.self)
            current.deallocate()
        }
        ledger.pointee.existing.deallocate()
        ledger.deallocate()
        classes.deallocate()
    }

    /// The capacity that ``allocate(_:)`` gives for `count` bytes, at least 16.
    public static func capacity(for count: Int) -> Int {
        let index = classIndex(for: count)
        return index < classCount ? capacity(ofClass: index) : count
    }

    /// A buffer of ``capacity(for:)`` bytes, 8-byte aligned, its content undefined.
    public func allocate(_ count: Int) -> UnsafeMutableRawPointer {
        let index = Self.classIndex(for: count)
        guard index < Self.classCount else {
            ledger.pointee.existing[Self.classCount] += count
            return .allocate(byteCount: count, alignment: 16)
        }
        if let buffer = pop(index) { return buffer }
        return refill(index)
    }

    /// Takes back a buffer that was allocated for `count` bytes.
    public func deallocate(_ buffer: UnsafeMutableRawPointer, count: Int) {
        let index = Self.classIndex(for: count)
        guard index < Self.classCount else {
            ledger.pointee.existing[Self.classCount] -= count
            buffer.deallocate()
            return
        }
        push(buffer, index)
    }

    /// Bytes of all buffers that are out, each with its class's capacity; 0 once everything came back.
    package var bytesInUse: Int {
        var bytes = ledger.pointee.existing[Self.classCount]
        for index in 0..<Self.classCount {
            let inUse = ledger.pointee.existing[index] - classes[index].freeCount
            bytes += inUse * Self.capacity(ofClass: index)
        }
        return bytes
    }

    /// 2k for a power of two, 2k + 1 for one and a half of it.
    static func classIndex(for count: Int) -> Int {
        guard count > 16 else { return 0 }
        let exponent = Int.bitWidth - (count - 1).leadingZeroBitCount  // 2^exponent >= count
        let isHalfStep = count <= 3 << (exponent - 2)
        return (exponent - 4) * 2 - (isHalfStep ? 1 : 0)
    }

    static func capacity(ofClass index: Int) -> Int {
        index & 1 == 0 ? 16 << (index / 2) : 24 << (index / 2)
    }

    func pop(_ index: Int) -> UnsafeMutableRawPointer? {
        guard let buffer = classes[index].free else { return nil }
        classes[index].free = buffer.load(
            fromByteOffset: Self.linkOffset, as: UnsafeMutableRawPointer?.self)
        classes[index].freeCount -= 1
        return buffer
    }

    func push(_ buffer: UnsafeMutableRawPointer, _ index: Int) {
        guard classes[index].freeCount < Self.mostFree(ofClass: index) else {
            ledger.pointee.existing[index] -= 1
            buffer.deallocate()
            return
        }
        buffer.storeBytes(
            of: classes[index].free, toByteOffset: Self.linkOffset,
            as: UnsafeMutableRawPointer?.self)
        classes[index].free = buffer
        classes[index].freeCount += 1
    }

    static func mostFree(ofClass index: Int) -> Int {
        #if HERMES_UNPOOLED
            0
        #else
            let capacity = capacity(ofClass: index)
            return capacity <= largestCarved ? .max : keptBytes / capacity
        #endif
    }

    func refill(_ index: Int) -> UnsafeMutableRawPointer {
        let capacity = Self.capacity(ofClass: index)
        guard capacity <= Self.largestCarved else {
            ledger.pointee.existing[index] += 1
            return .allocate(byteCount: capacity, alignment: 16)
        }
        let page = UnsafeMutableRawPointer.allocate(byteCount: Self.pageBytes, alignment: 16)
        page.storeBytes(of: ledger.pointee.pages, as: UnsafeMutableRawPointer?.self)
        ledger.pointee.pages = page
        var offset = 16
        while offset + 2 * capacity <= Self.pageBytes {
            push(page + offset, index)
            ledger.pointee.existing[index] += 1
            offset += capacity
        }
        ledger.pointee.existing[index] += 1
        return page + offset
    }
}
