/// Names for messages.
enum MessageID {
    /// Longest name that a caller may give, in bytes.
    static let maximumLength = 128

    /// A UUID of version 7 (RFC 9562): the time in front, so that names sort by age, then 74
    /// random bits.
    static func make(
        unixMilliseconds: Int64, using generator: inout some RandomNumberGenerator
    ) -> String {
        let time = UInt64(bitPattern: unixMilliseconds) & 0xFFFF_FFFF_FFFF
        let high = time << 16 | 0x7000 | generator.next() & 0x0FFF
        let low = 0x8000_0000_0000_0000 | generator.next() & 0x3FFF_FFFF_FFFF_FFFF
        let digits = hexadecimal(high) + hexadecimal(low)
        var name: [UInt8] = []
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { name.append(UInt8(ascii: "-")) }
            name.append(digit)
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// True for 1 to 128 visible ASCII characters.
    static func isValid(_ text: String) -> Bool {
        (1...maximumLength).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private static func hexadecimal(_ number: UInt64) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return (0..<16).map { digits[Int(number >> (60 - 4 * UInt64($0)) & 0xF)] }
    }
}
