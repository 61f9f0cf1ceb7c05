/// The number of bytes behind the fixed header (section 2.2.3), encoded in base 128, least
/// significant group first.
public struct RemainingLength: Hashable, Sendable {
    public static let maximumEncodedSize = 4
    public static let maximumValue = 268_435_455

    public let value: Int
    /// Bytes of the encoding, 1 to 4. MQTT 3.1.1 allows longer encodings than needed.
    public let encodedSize: Int

    /// Reads the length that begins at `offset`; `nil` when more bytes are needed.
    public static func decode(
        _ bytes: RawSpan, at offset: Int
    ) throws(MalformedPacket) -> RemainingLength? {
        var value = 0
        let available = min(bytes.byteCount - offset, maximumEncodedSize)
        for index in 0..<max(0, available) {
            let byte = bytes.byte(at: offset + index)
            value |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return RemainingLength(value: value, encodedSize: index + 1) }
        }
        if available == maximumEncodedSize { throw .remainingLengthTooLong }
        return nil
    }

    /// Bytes that the encoding of `value` needs: 1 to 4.
    public static func encodedSize(of value: Int) -> Int {
        precondition(value >= 0 && value <= maximumValue, "no remaining length: \(value)")
        return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4
    }
}
