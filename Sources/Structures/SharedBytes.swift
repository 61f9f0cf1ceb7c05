/// A byte buffer with a reference count, so that a large payload is stored once for all queues of a
/// thread.
///
/// The count is not atomic, because all owners belong to one shard. Each owner calls
/// ``release(in:)`` once; an owner that adds another calls ``retain()`` first.
public struct SharedBytes: BitwiseCopyable {
    struct Header {
        var references: UInt32
        var count: UInt32
    }

    let pointer: UnsafeMutableRawPointer
    static var headerBytes: Int { 8 }

    /// Allocates `count` undefined bytes; the caller owns the first reference.
    public init(count: Int, pool: BytePool) {
        precondition(count < Int(UInt32.max), "\(count) bytes are more than a packet holds")
        pointer = pool.allocate(count + Self.headerBytes)
        pointer.storeBytes(of: Header(references: 1, count: UInt32(count)), as: Header.self)
    }

    /// The memory that they take.
    public var capacity: Int { BytePool.capacity(for: count + Self.headerBytes) }

    public var count: Int { Int(pointer.load(as: Header.self).count) }

    /// The content, 8-byte aligned.
    public var bytes: UnsafeMutableRawPointer { pointer + Self.headerBytes }

    public func retain() {
        pointer.assumingMemoryBound(to: Header.self).pointee.references += 1
    }

    /// Gives one reference up. The last one returns the buffer to the pool.
    public func release(in pool: BytePool) {
        let header = pointer.assumingMemoryBound(to: Header.self)
        if header.pointee.references > 1 {
            header.pointee.references -= 1
        } else {
            precondition(header.pointee.references == 1, "shared bytes released twice")
            header.pointee.references = 0
            pool.deallocate(pointer, count: Int(header.pointee.count) + Self.headerBytes)
        }
    }
}
