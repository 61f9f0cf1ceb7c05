/// Bytes that wait to be sent on one connection, as a chain of pooled chunks.
///
/// Small packets are copied into the last chunk; large payloads are referred to as ``SharedBytes``.
/// Sending frees the chain chunk by chunk and never moves unsent bytes. An empty queue holds no
/// chunk. The queue belongs to one thread, and its owner calls ``removeAll(in:)`` before dropping
/// it.
public struct OutputQueue: BitwiseCopyable {
    struct Chunk {
        var next: UnsafeMutablePointer<Chunk>?
        /// The first unsent byte, inside this chunk's buffer or inside `shared`.
        var start: UnsafeMutableRawPointer
        var count: UInt32
        /// Bytes that the buffer behind this header may still take; 0 for a shared chunk.
        var room: UInt32
        /// Bytes that were asked of the pool for this chunk, header included.
        var allocated: UInt32
        var shared: SharedBytes?
    }

    /// A run of unsent bytes; laid out as the kernel's `iovec`.
    public struct Segment {
        public var base: UnsafeMutableRawPointer?
        public var count: Int

        public init() {
            base = nil
            count = 0
        }
    }

    static var headerBytes: Int { MemoryLayout<Chunk>.size }
    static var smallestChunk: Int { 384 }
    static var largestChunk: Int { 64 * 1_024 }
    /// Room in a first chunk before its bytes, for ``prepend(_:pool:)``: the header of a usual frame of
    /// WebSocket.
    static var headroom: Int { 4 }

    var head: UnsafeMutablePointer<Chunk>?
    var tail: UnsafeMutablePointer<Chunk>?
    /// Number of unsent bytes.
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    /// Makes room for `size` contiguous bytes at the end; the caller fills them at once.
    public mutating func append(_ size: Int, pool: BytePool) -> UnsafeMutableRawPointer {
        if let tail, Int(tail.pointee.room) >= size {
            let destination = tail.pointee.start + Int(tail.pointee.count)
            tail.pointee.count += UInt32(truncatingIfNeeded: size)
            tail.pointee.room -= UInt32(truncatingIfNeeded: size)
            addToCount(size)
            return destination
        }
        return appendChunk(for: size, pool: pool)
    }

    /// Appends a copy of the bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, pool: BytePool) {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        append(bytes.count, pool: pool).copyMemory(from: base, byteCount: bytes.count)
    }

    /// Appends a part of shared bytes without copying it. The queue retains them until the part is
    /// sent.
    public mutating func append(
        _ shared: SharedBytes, offset: Int, count size: Int, pool: BytePool
    ) {
        precondition(offset >= 0 && size > 0 && offset + size <= shared.count)
        shared.retain()
        let chunk = pool.allocate(Self.headerBytes).bindMemory(to: Chunk.self, capacity: 1)
        chunk.initialize(
            to: Chunk(
                next: nil, start: shared.bytes + offset, count: UInt32(size), room: 0,
                allocated: UInt32(Self.headerBytes), shared: shared))
        link(chunk)
        addToCount(size)
    }

    /// Makes room for `size` contiguous bytes before all others; the caller fills them at once. There is
    /// room in the first chunk for up to 4 bytes if nothing was put before it since it was empty.
    public mutating func prepend(_ size: Int, pool: BytePool) -> UnsafeMutableRawPointer {
        addToCount(size)
        if let head, head.pointee.shared == nil {
            let buffer = UnsafeMutableRawPointer(head) + Self.headerBytes
            if head.pointee.start - buffer >= size {
                head.pointee.start -= size
                head.pointee.count += UInt32(truncatingIfNeeded: size)
                return head.pointee.start
            }
        }
        let raw = pool.allocate(Self.headerBytes + size)
        let chunk = raw.bindMemory(to: Chunk.self, capacity: 1)
        let start = raw + Self.headerBytes
        chunk.initialize(
            to: Chunk(
                next: head, start: start, count: UInt32(size), room: 0,
                allocated: UInt32(Self.headerBytes + size), shared: nil))
        head = chunk
        if tail == nil { tail = chunk }
        return start
    }

    /// Writes the first unsent runs into `segments` and returns how many it wrote.
    public func fill(_ segments: UnsafeMutablePointer<Segment>, capacity: Int) -> Int {
        var filled = 0
        var chunk = head
        while let current = chunk, filled < capacity {
            segments[filled].base = current.pointee.start
            segments[filled].count = Int(current.pointee.count)
            filled += 1
            chunk = current.pointee.next
        }
        return filled
    }

    /// Removes the first `size` bytes, which the kernel has taken.
    public mutating func consume(_ size: Int, pool: BytePool) {
        precondition(size <= count, "\(size) bytes sent of \(count)")
        count -= size
        var remaining = size
        while let chunk = head, remaining >= Int(chunk.pointee.count) {
            remaining -= Int(chunk.pointee.count)
            head = chunk.pointee.next
            free(chunk, pool)
            if head == nil { tail = nil }
        }
        guard remaining > 0, let chunk = head else { return }
        chunk.pointee.start += remaining
        chunk.pointee.count -= UInt32(remaining)
    }

    /// Drops all unsent bytes and gives the chunks back.
    public mutating func removeAll(in pool: BytePool) {
        while let chunk = head {
            head = chunk.pointee.next
            free(chunk, pool)
        }
        tail = nil
        count = 0
    }

    mutating func addToCount(_ size: Int) { count += size }

    /// Adds a chunk for `size` bytes. It is as large as the bytes that already wait, within 384
    /// bytes and 64 KiB, so that a long queue has few chunks.
    mutating func appendChunk(for size: Int, pool: BytePool) -> UnsafeMutableRawPointer {
        let before = Self.headerBytes + (head == nil ? Self.headroom : 0)
        let wanted = max(
            size,
            min(Self.largestChunk - before, max(Self.smallestChunk - before, count)))
        let capacity = BytePool.capacity(for: wanted + before)
        let raw = pool.allocate(wanted + before)
        let chunk = raw.bindMemory(to: Chunk.self, capacity: 1)
        let start = raw + before
        chunk.initialize(
            to: Chunk(
                next: nil, start: start, count: UInt32(size),
                room: UInt32(capacity - before - size),
                allocated: UInt32(wanted + before), shared: nil))
        link(chunk)
        count += size
        return start
    }

    private mutating func link(_ chunk: UnsafeMutablePointer<Chunk>) {
        if let tail { tail.pointee.next = chunk } else { head = chunk }
        tail = chunk
    }

    private func free(_ chunk: UnsafeMutablePointer<Chunk>, _ pool: BytePool) {
        if let shared = chunk.pointee.shared { shared.release(in: pool) }
        pool.deallocate(UnsafeMutableRawPointer(chunk), count: Int(chunk.pointee.allocated))
    }
}
