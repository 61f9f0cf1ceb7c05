/// A KeyUpdate of the peer (RFC 8446, section 4.6.3), which may arrive in pieces.
///
/// Its five bytes are the type, a length of 1, and whether the peer asks for a KeyUpdate in return.
/// Each is checked when it comes, and none is kept.
struct KeyUpdateMessage: BitwiseCopyable {
    static var size: Int { 5 }
    private static var type: UInt8 { 24 }

    /// Bytes that have come.
    private var count: UInt8 = 0

    /// True between the pieces of a message.
    var hasBegun: Bool { count > 0 }

    /// Takes the next byte. With the last one, returns whether the peer asks for a KeyUpdate in
    /// return; before that, `nil`.
    mutating func take(_ byte: UInt8) throws(SecureChannel.Alert) -> Bool? {
        switch (count, byte) {
        case (0, Self.type), (1...2, 0), (3, 1):
            count += 1
            return nil
        case (0, _): throw .unexpectedMessage
        case (1...3, _): throw .decodeError
        case (_, 0...1):
            count = 0
            return byte == 1
        default: throw .illegalParameter
        }
    }

    /// Writes a KeyUpdate that asks for none in return.
    static func write(to place: UnsafeMutableRawPointer) {
        let bytes: InlineArray<5, UInt8> = [type, 0, 0, 1, 0]
        place.storeBytes(of: bytes, as: InlineArray<5, UInt8>.self)
    }
}
