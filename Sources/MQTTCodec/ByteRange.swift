/// The place of a field inside the bytes that it was decoded from: decoded packets carry ranges,
/// not copies.
///
/// A range means something only together with those bytes. Code that keeps a field for longer
/// copies it.
public struct ByteRange: Hashable, Sendable, BitwiseCopyable {
    public var offset: UInt32
    public var count: UInt32

    public init(offset: Int, count: Int) {
        self.offset = UInt32(truncatingIfNeeded: offset)
        self.count = UInt32(truncatingIfNeeded: count)
    }

    public var start: Int { Int(offset) }
    public var end: Int { Int(offset) + Int(count) }
    public var isEmpty: Bool { count == 0 }
}

extension UnsafeRawBufferPointer {
    /// The bytes of a field that was decoded from this buffer.
    public subscript(range: ByteRange) -> UnsafeRawBufferPointer {
        precondition(range.end <= count, "a field ends at \(range.end) of \(count) bytes")
        guard let baseAddress else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: baseAddress + range.start, count: Int(range.count))
    }
}

extension RawSpan {
    /// Reads one byte, bounds-checked. "Unsafe" in the standard library's name speaks of types, and
    /// every byte is a valid `UInt8`.
    func byte(at offset: Int) -> UInt8 {
        unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// Reads eight bytes of any alignment, bounds-checked, in the machine's order.
    func word(at offset: Int) -> UInt64 {
        unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
}
