import Testing

@testable import TLS

@Suite("TLS keys")
struct KeyDerivationTests {
    private static func bytes(_ hexadecimal: String) -> [UInt8] {
        let digits = hexadecimal.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] * 16 + digits[$0 + 1])
        }
    }

    /// RFC 8448, section 3: a secret, its key and its nonce.
    @Test(
        "a traffic secret gives the key and the nonce of RFC 8448",
        arguments: [
            (
                "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
                "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9"
            ),
            (
                "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
                "9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"
            ),
        ])
    func labels(secret: String, key: String, iv: String) {
        let secret = Self.bytes(secret)
        #expect(KeyDigest.sha256.expandLabel(secret, "key", 16) == Self.bytes(key))
        #expect(KeyDigest.sha256.expandLabel(secret, "iv", 12) == Self.bytes(iv))
    }

    @Test("the sequence number changes the end of the nonce")
    func nonces() {
        let iv = [UInt8](repeating: 0xF0, count: 12)
        let key = [UInt8](repeating: 1, count: 16)
        for (sequence, end) in [
            (UInt64(0), [UInt8](repeating: 0xF0, count: 8)),
            (1, [0xF0, 0xF0, 0xF0, 0xF0, 0xF0, 0xF0, 0xF0, 0xF1]),
            (0x0102_0304_0506_0708, [0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8]),
        ] {
            let traffic = TrafficKey(key: key[...], iv: iv[...], sequence: sequence)
            let nonce = traffic.nonce
            #expect((0..<12).map { nonce[$0] } == [0xF0, 0xF0, 0xF0, 0xF0] + end)
        }
    }
}
