/// A number of up to 28 bits in one to four bytes (MQTT 5.0, section 1.5.5): base 128, least
/// significant group first, in the fewest bytes possible.
///
/// MQTT 3.1.1 has the same encoding for ``RemainingLength`` only, and lets it be longer than needed.
enum VariableByteInteger {
    static let maximumEncodedSize = 4
    static let maximumValue = 268_435_455

    struct Decoded {
        let value: Int
        /// 1 to 4 bytes.
        let encodedSize: Int
    }

    /// Reads the number at `offset`, before `end`; `nil` when it does not end before that.
    @inline(__always)
    static func decode(
        _ bytes: RawSpan, at offset: Int, end: Int
    ) throws(PacketFault) -> Decoded? {
        guard offset < end else { return nil }
        let first = bytes.byte(at: offset)
        if first & 0x80 == 0 { return Decoded(value: Int(first), encodedSize: 1) }
        return try decodeLong(bytes, at: offset, end: end)
    }

    private static func decodeLong(
        _ bytes: RawSpan, at offset: Int, end: Int
    ) throws(PacketFault) -> Decoded? {
        var value = 0
        let available = min(end - offset, maximumEncodedSize)
        for index in 0..<available {
            let byte = bytes.byte(at: offset + index)
            value |= Int(byte & 0x7F) << (7 * index)
            guard byte & 0x80 == 0 else { continue }
            // A last group of 0 could have been left out [MQTT-1.5.5-1].
            guard index == 0 || byte != 0 else { throw .variableByteIntegerNotMinimal }
            return Decoded(value: value, encodedSize: index + 1)
        }
        if available == maximumEncodedSize { throw .variableByteIntegerTooLong }
        return nil
    }

    /// Bytes that the encoding of `value` needs: 1 to 4.
    static func encodedSize(of value: Int) -> Int { RemainingLength.encodedSize(of: value) }

    /// Writes `value` and returns the bytes that it took.
    @discardableResult
    static func store(_ value: Int, to destination: UnsafeMutableRawPointer) -> Int {
        var rest = value
        var offset = 0
        while rest >= 128 {
            destination.storeBytes(
                of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: offset, as: UInt8.self)
            rest >>= 7
            offset += 1
        }
        destination.storeBytes(
            of: UInt8(truncatingIfNeeded: rest), toByteOffset: offset, as: UInt8.self)
        return offset + 1
    }

    static func append(_ value: Int, to output: inout [UInt8]) {
        precondition(value >= 0 && value <= maximumValue, "no variable byte integer: \(value)")
        var rest = value
        while rest >= 128 {
            output.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        output.append(UInt8(rest))
    }
}
