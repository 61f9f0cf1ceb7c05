/// Recycles byte buffers in size classes, so that a warm packet path allocates nothing.
///
/// The classes are 16, 24, 32, 48, 64, 96 … bytes, up to 64 KiB. A larger buffer comes from malloc
/// with exactly the size that was asked for. Classes up to 2 KiB are cut from 16 KiB pages, without
/// a header per buffer; the pool never gives these pages back. Larger classes come from malloc, and
/// at most 2 MiB of free buffers are kept per class.
///
/// The value is a pointer to the pool's state, so copying it is free. It counts no references: the
/// shard that made the pool calls ``destroy()``. The pool and every buffer from it belong to one
/// thread.
public struct BytePool: BitwiseCopyable {
    static var classCount: Int { 25 }
    /// The largest class whose buffers are cut from pages.
    private static var largestCarved: Int {
        #if HERMES_UNPOOLED
            // Every buffer comes from malloc and goes back to it, so that AddressSanitizer watches
            // each one.
            0
        #else
            2_048
        #endif
    }
    private static var pageBytes: Int { 16 * 1_024 }
    /// Bytes of free buffers that are kept per class above ``largestCarved``.
    private static var keptBytes: Int { 2 * 1_024 * 1_024 }
    /// Offset at which a free buffer holds the address of the next free one. It lies behind the
    /// eight bytes in which ``SharedBytes`` counts its references, so that a second release still
    /// finds 0 there and traps.
    private static var linkOffset: Int { 8 }

    struct SizeClass {
        var free: UnsafeMutableRawPointer?
        var freeCount = 0
    }

    /// Bookkeeping that is touched only when memory is taken from the system or given back. A warm
    /// packet path never does either.
    private struct Ledger {
        var pages: UnsafeMutableRawPointer?
        /// Per class, the buffers that exist, in use or free. The last element counts the bytes of
        /// buffers above the largest class.
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

    /// The largest buffer that the pool recycles.
    public static var largestClass: Int { capacity(ofClass: classCount - 1) }

    /// The capacity that ``allocate(_:)`` gives for `count` bytes, at least 16.
    public static func capacity(for count: Int) -> Int {
        let index = classIndex(for: count)
        return index < classCount ? capacity(ofClass: index) : count
    }

    /// Hands out a buffer of ``capacity(for:)`` bytes. It is 8-byte aligned and its content is
    /// undefined.
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

    /// Bytes of all buffers in use, each counted with its class's capacity. 0 once every buffer has
    /// come back.
    public var bytesInUse: Int {
        var bytes = ledger.pointee.existing[Self.classCount]
        for index in 0..<Self.classCount {
            let inUse = ledger.pointee.existing[index] - classes[index].freeCount
            bytes += inUse * Self.capacity(ofClass: index)
        }
        return bytes
    }

    /// The smallest class that holds `count` bytes: 2k is the class of 16 · 2^k bytes, 2k + 1 that
    /// of 24 · 2^k.
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

    /// The free buffers that a class keeps at most; further ones go back to malloc.
    static func mostFree(ofClass index: Int) -> Int {
        #if HERMES_UNPOOLED
            0
        #else
            let capacity = capacity(ofClass: index)
            return capacity <= largestCarved ? .max : keptBytes / capacity
        #endif
    }

    /// Gets a buffer of a class without free ones: the last piece of a new page, or one from
    /// malloc.
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
