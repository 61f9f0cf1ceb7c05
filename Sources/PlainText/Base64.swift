/// Bytes as text of 64 letters (RFC 4648).
package enum Base64 {
    /// With `+`, `/` and padding (section 4).
    package static func text(of bytes: some Collection<UInt8>) -> String {
        let text = encoded(bytes, standard)
        return text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    }

    /// For names and URLs: with `-` and `_`, and without padding (section 5).
    package static func urlText(of bytes: some Collection<UInt8>) -> String {
        encoded(bytes, url)
    }

    private static let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    private static let standard = Array("\(letters)+/".utf8)
    private static let url = Array("\(letters)-_".utf8)

    private static func encoded(
        _ bytes: some Collection<UInt8>, _ alphabet: [UInt8]
    ) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 4 / 3 + 3)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(bits >> count & 0x3F)])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << (6 - count) & 0x3F)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
