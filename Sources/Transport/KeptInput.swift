import CLinux
import Glibc
import Structures

/// Input that cannot be used yet, such as an incomplete packet: a buffer of the pool, or none.
///
/// A buffer above the pool's largest class is a mapping of its own, which grows without being copied
/// and goes back to the system at once. On the heap, buffers of ever other sizes left holes, and the
/// process took three times what they held.
///
/// Part of a record of trivial type, so its owner must call ``release(in:)`` before dropping it,
/// and must report a changed ``capacity`` to ``HeldInput``.
struct KeptInput: BitwiseCopyable {
    private var base: UnsafeMutableRawPointer?
    private var storedCount: UInt32 = 0
    /// The highest bit is set for a mapping.
    private var storedCapacity: UInt32 = 0

    /// Up to this size, kept input moves to the shared buffer; reads append to larger input.
    static var movableBytes: Int { 8 * 1_024 }

    var count: Int { Int(storedCount) }
    /// The size of the buffer; 0 without one.
    var capacity: Int { Int(storedCapacity & ~Self.mappedBit) }
    private var isMapped: Bool { storedCapacity & Self.mappedBit != 0 }

    private static var mappedBit: UInt32 { 1 << 31 }
    private static var pageBytes: Int { 4 * 1_024 }
    /// A mapping grows by at least this much, and by half.
    private static var leastGrowth: Int { 64 * 1_024 }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// The place for a read of at least `size` bytes: a buffer that begins with the kept bytes,
    /// their count, and its capacity. A large packet has a buffer of its own, which grows with the
    /// bytes received and not with the announced length.
    @inline(__always)
    mutating func room(
        for size: Int, _ bench: borrowing Workbench
    ) -> (base: UnsafeMutableRawPointer, kept: Int, capacity: Int) {
        guard let base else { return (bench.input, 0, Workbench.inputBytes) }
        guard count > Self.movableBytes else {
            bench.input.copyMemory(from: base, byteCount: count)
            return (bench.input, count, Workbench.inputBytes)
        }
        guard count + size > capacity else { return (base, count, capacity) }
        return (grow(base, by: size, bench.pool), count, capacity)
    }

    private mutating func grow(
        _ old: UnsafeMutableRawPointer, by size: Int, _ pool: BytePool
    ) -> UnsafeMutableRawPointer {
        if isMapped {
            let larger = Self.wholePages(count + max(size, count / 2, Self.leastGrowth))
            if let moved = hermes_remap(old, capacity, larger) {
                base = moved
                storedCapacity = UInt32(larger) | Self.mappedBit
                return moved
            }
        }
        var larger = KeptInput()
        let buffer = larger.allocate(max(count + size, count * 2), pool)
        buffer.copyMemory(from: old, byteCount: count)
        larger.storedCount = storedCount
        release(in: pool)
        self = larger
        return buffer
    }

    /// Gets a buffer of at least so many bytes for a value that has none.
    private mutating func allocate(_ size: Int, _ pool: BytePool) -> UnsafeMutableRawPointer {
        if size > BytePool.largestClass {
            let bytes = Self.wholePages(size)
            if let memory = hermes_map(bytes) {
                base = memory
                storedCapacity = UInt32(bytes) | Self.mappedBit
                return memory
            }
        }
        let buffer = pool.allocate(size)
        base = buffer
        storedCapacity = UInt32(BytePool.capacity(for: size))
        return buffer
    }

    private static func wholePages(_ bytes: Int) -> Int {
        (bytes + pageBytes - 1) / pageBytes * pageBytes
    }

    /// Keeps `bytes` after the first `consumed` ones; they may be in this buffer already.
    @inline(__always)
    mutating func keep(_ bytes: UnsafeRawBufferPointer, from consumed: Int, in pool: BytePool) {
        let remaining = bytes.count - consumed
        guard remaining > 0, let start = bytes.baseAddress else {
            release(in: pool)
            return
        }
        let source = start + consumed
        if let base, remaining <= capacity {
            if UnsafeRawPointer(base) != source { memmove(base, source, remaining) }
        } else {
            var larger = KeptInput()
            larger.allocate(remaining, pool).copyMemory(from: source, byteCount: remaining)
            release(in: pool)
            self = larger
        }
        storedCount = UInt32(remaining)
    }

    mutating func release(in pool: BytePool) {
        guard let base else { return }
        if isMapped {
            hermes_unmap(base, capacity)
        } else {
            pool.deallocate(base, count: capacity)
        }
        self = KeptInput()
    }
}
