/// An immutable byte string of up to 65,535 bytes in a value of 16 bytes.
///
/// Up to 12 bytes are stored in place, longer strings in a buffer of the pool. A copy of the value
/// shares that buffer, so exactly one owner calls ``destroy(in:)``.
public struct CompactBytes: BitwiseCopyable {
    var low: UInt64 = 0
    var high: UInt32 = 0
    let length: UInt16
    private let reserved: UInt16 = 0

    static var inlineCapacity: Int { 12 }

    public init() { length = 0 }

    public init(_ bytes: UnsafeRawBufferPointer, pool: BytePool) {
        precondition(bytes.count <= Int(UInt16.max), "\(bytes.count) bytes are no MQTT string")
        length = UInt16(bytes.count)
        guard let base = bytes.baseAddress, bytes.count > 0 else { return }
        if bytes.count <= Self.inlineCapacity {
            withUnsafeMutableBytes(of: &self) {
                $0.baseAddress?.copyMemory(from: base, byteCount: bytes.count)
            }
        } else {
            let buffer = pool.allocate(bytes.count)
            buffer.copyMemory(from: base, byteCount: bytes.count)
            low = UInt64(UInt(bitPattern: buffer))
        }
    }

    public var count: Int { Int(length) }
    public var isEmpty: Bool { length == 0 }

    /// Lends the bytes to `body`; the pointer is valid only during the call.
    public func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if count > Self.inlineCapacity {
            let base = UnsafeRawPointer(bitPattern: UInt(low))
            return try body(UnsafeRawBufferPointer(start: base, count: count))
        }
        var copy = (low, high)
        return try withUnsafeBytes(of: &copy) { (bytes) throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[0..<count]))
        }
    }

    public func equals(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == count else { return false }
        return withBytes { own in own.elementsAreEqual(to: bytes) }
    }

    public var array: [UInt8] { withBytes { [UInt8]($0) } }

    public func destroy(in pool: BytePool) {
        guard count > Self.inlineCapacity,
            let buffer = UnsafeMutableRawPointer(bitPattern: UInt(low))
        else { return }
        pool.deallocate(buffer, count: count)
    }
}

extension UnsafeRawBufferPointer {
    /// Compares length and bytes, eight bytes at a time.
    public func elementsAreEqual(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard count > 0, let left = baseAddress, let right = other.baseAddress else { return true }
        guard count >= 8 else {
            for offset in 0..<count where self[offset] != other[offset] { return false }
            return true
        }
        // Word by word; the last word may overlap the one before.
        var offset = 0
        while true {
            guard
                left.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    == right.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            else { return false }
            if offset + 8 == count { return true }
            offset = Swift.min(offset + 8, count - 8)
        }
    }
}
