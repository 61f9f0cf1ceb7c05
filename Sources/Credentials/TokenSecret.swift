/// New secrets for the HTTP API.
package enum TokenSecret {
    /// The beginning of each token of the token file, by which a program that looks for leaked
    /// secrets recognises one.
    package static let prefix = "hermes_"

    /// 256 random bits in base64url without padding (RFC 4648): 43 characters that are safe in a
    /// header, a URL and a shell.
    package static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let digits = Array(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var accumulated: UInt32 = 0
        var bits = 0
        for byte in random {
            accumulated = accumulated << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(digits[Int(accumulated >> UInt32(bits) & 0x3F)])
            }
        }
        if bits > 0 { text.append(digits[Int(accumulated << UInt32(6 - bits) & 0x3F)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
