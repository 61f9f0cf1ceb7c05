/// Reads the fields of a Protocol Buffers message in their order, without allocating ("Encoding",
/// Protocol Buffers documentation). Groups, which proto3 does not have, count as malformed.
package struct ProtobufFields {
    package enum Value {
        case number(UInt64)
        case bytes(UnsafeRawBufferPointer)
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    /// True once a field broke the format.
    package private(set) var isMalformed = false

    /// The bytes must outlive this value and what it returns.
    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The next field; `nil` at the end and at a malformed one.
    package mutating func next() -> (field: UInt64, value: Value)? {
        guard position < bytes.count, !isMalformed else { return nil }
        guard let tag = varint(), tag >> 3 > 0, tag >> 3 < 1 << 29, let value = value(of: tag & 7)
        else {
            isMalformed = true
            return nil
        }
        return (tag >> 3, value)
    }

    private mutating func value(of wireType: UInt64) -> Value? {
        switch wireType {
        case 0: varint().map { .number($0) }
        case 1: take(8).map { .bytes($0) }
        case 2: varint().flatMap { take($0) }.map { .bytes($0) }
        case 5: take(4).map { .bytes($0) }
        default: nil
        }
    }

    private mutating func take(_ count: UInt64) -> UnsafeRawBufferPointer? {
        guard count <= UInt64(bytes.count - position) else { return nil }
        let start = position
        position += Int(count)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    /// Seven bits a byte, least significant first; bits beyond 64 are dropped, as all readers do.
    private mutating func varint() -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        return nil
    }
}
