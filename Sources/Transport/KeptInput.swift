import Glibc
import Structures

/// Input that cannot be used yet, such as an incomplete packet: a buffer of the pool, or none.
///
/// Part of a record of trivial type, so its owner must call ``release(in:)`` before dropping it,
/// and must report a changed ``capacity`` to ``HeldInput``.
struct KeptInput: BitwiseCopyable {
    private var base: UnsafeMutableRawPointer?
    private var storedCount: UInt32 = 0
    private var storedCapacity: UInt32 = 0

    /// Up to this size, kept input moves to the shared buffer; reads append to larger input.
    static var movableBytes: Int { 8 * 1_024 }

    var count: Int { Int(storedCount) }
    /// The size of the buffer; 0 without one.
    var capacity: Int { Int(storedCapacity) }

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
        return (grow(base, to: max(count + size, count * 2), bench.pool), count, capacity)
    }

    private mutating func grow(
        _ old: UnsafeMutableRawPointer, to size: Int, _ pool: BytePool
    ) -> UnsafeMutableRawPointer {
        let larger = pool.allocate(size)
        larger.copyMemory(from: old, byteCount: count)
        pool.deallocate(old, count: capacity)
        base = larger
        storedCapacity = UInt32(BytePool.capacity(for: size))
        return larger
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
            let buffer = pool.allocate(remaining)
            buffer.copyMemory(from: source, byteCount: remaining)
            release(in: pool)
            base = buffer
            storedCapacity = UInt32(BytePool.capacity(for: remaining))
        }
        storedCount = UInt32(remaining)
    }

    mutating func release(in pool: BytePool) {
        guard let base else { return }
        pool.deallocate(base, count: capacity)
        self = KeptInput()
    }
}
