/// Base64 with padding (RFC 4648, section 4). Foundation would be needed for nothing else.
enum Base64 {
    static let digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func text(_ bytes: [UInt8]) -> String {
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = (0..<3).reduce(UInt32(0)) { bits, index in
                bits << 8 | (index < group.count ? UInt32(group[start + index]) : 0)
            }
            for index in 0..<4 {
                text.append(
                    index <= group.count ? digit(bits >> UInt32(18 - 6 * index)) : "=")
            }
        }
        return text
    }

    private static func digit(_ bits: UInt32) -> Character {
        Character(Unicode.Scalar(digits[Int(bits & 63)]))
    }
}
