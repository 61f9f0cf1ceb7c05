/// Walks bytes of unknown origin, one Unicode scalar or one invalid byte at a time.
package enum UTF8Scanner {
    package enum Unit: Equatable {
        case scalar(Unicode.Scalar)
        /// A byte that belongs to no well-formed sequence.
        case invalid(UInt8)
    }

    /// The unit at `position`, which moves behind it; `nil` at the end.
    package static func next(in bytes: Span<UInt8>, at position: inout Int) -> Unit? {
        guard position < bytes.count else { return nil }
        let first = bytes[position]
        if first < 0x80 {
            position += 1
            return .scalar(Unicode.Scalar(first))
        }
        // Table 3-7 of the Unicode Standard: the second byte's bounds exclude overlong forms,
        // surrogates and what lies beyond U+10FFFF.
        let (length, second): (Int, ClosedRange<UInt8>) =
            switch first {
            case 0xC2...0xDF: (2, 0x80...0xBF)
            case 0xE0: (3, 0xA0...0xBF)
            case 0xED: (3, 0x80...0x9F)
            case 0xE1...0xEF: (3, 0x80...0xBF)
            case 0xF0: (4, 0x90...0xBF)
            case 0xF1...0xF3: (4, 0x80...0xBF)
            case 0xF4: (4, 0x80...0x8F)
            default: (1, 0x80...0xBF)
            }
        guard length > 1, position + length <= bytes.count,
            second.contains(bytes[position + 1])
        else {
            position += 1
            return .invalid(first)
        }
        var value = UInt32(first) & (0x7F >> UInt32(length))
        for offset in 1..<length {
            let byte = bytes[position + offset]
            guard byte & 0xC0 == 0x80 else {
                position += 1
                return .invalid(first)
            }
            value = value << 6 | UInt32(byte & 0x3F)
        }
        guard let scalar = Unicode.Scalar(value) else {
            preconditionFailure("the ranges above admitted \(value), which is no scalar")
        }
        position += length
        return .scalar(scalar)
    }
}
