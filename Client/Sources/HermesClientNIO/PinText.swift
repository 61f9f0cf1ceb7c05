/// Pins as people write them: `sha256/` and the Base64 of 32 bytes.
package enum PinText {
    package static let byteCount = 32
    private static let prefix = "sha256/"

    /// The pin's bytes; `nil` if `text` is none. The prefix may be left out.
    package static func bytes(_ text: String) -> [UInt8]? {
        var rest = Substring(text)
        if rest.hasPrefix(prefix) { rest = rest.dropFirst(prefix.count) }
        // 32 bytes are 43 digits and one "=", and the last digit has two bits that must be 0.
        guard rest.utf8.count == 44, rest.hasSuffix("=") else { return nil }
        var bytes: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        for byte in rest.utf8.dropLast() {
            guard let digit = Base64.digits.firstIndex(of: byte) else { return nil }
            bits = bits << 6 | UInt32(digit)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return bits & 0b11 == 0 ? bytes : nil
    }

    package static func text(_ pin: [UInt8]) -> String { prefix + Base64.text(pin) }

    static func objection(to pin: [UInt8]) -> String {
        "no pin is that of the broker's key, \(text(pin))"
    }
}
