/// Bytes in hexadecimal: `"30 05 00 01 61 00 0A"`. Blanks and line ends may stand between pairs of
/// digits, so that long packets can be laid out by field.
package struct WireBytes: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Traps on other text, which is a mistake in the test.
    package init(stringLiteral text: String) {
        guard let bytes = Self.parse(text) else {
            preconditionFailure("\"\(text)\" is not pairs of hexadecimal digits")
        }
        self.bytes = bytes
    }

    package var count: Int { bytes.count }

    /// Pairs of digits with blanks; of more than 64 bytes the first 64 and the count.
    package var description: String {
        let shown = bytes.prefix(64).map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.count == 1 ? "0" + digits : digits
        }
        let text = shown.joined(separator: " ")
        return bytes.count > shown.count ? "\(text) … (\(bytes.count) bytes)" : text
    }

    package static func + (left: Self, right: Self) -> Self { Self(left.bytes + right.bytes) }

    /// `nil` for a character that is no digit, or a single digit.
    private static func parse(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var pending: UInt8?
        for character in text {
            guard !character.isWhitespace else {
                guard pending == nil else { return nil }
                continue
            }
            guard let value = character.hexDigitValue, character.isASCII else { return nil }
            let digit = UInt8(value)
            if let upper = pending {
                bytes.append(upper << 4 | digit)
                pending = nil
            } else {
                pending = digit
            }
        }
        return pending == nil ? bytes : nil
    }
}
