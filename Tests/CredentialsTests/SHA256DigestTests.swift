import Testing

@testable import Credentials

@Suite("SHA-256")
struct SHA256DigestTests {
    /// The examples of FIPS 180-4 and NIST's short messages, and lengths around the end of a block
    /// with digests by sha256sum.
    @Test(
        "digests are those of the standard",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                String(repeating: "a", count: 55),
                "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"
            ),
            (
                String(repeating: "a", count: 56),
                "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"
            ),
            (
                String(repeating: "a", count: 63),
                "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"
            ),
            (
                String(repeating: "a", count: 64),
                "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"
            ),
            (
                String(repeating: "a", count: 1_000_000),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
            ),
        ])
    func vectors(message: String, hexadecimal: String) {
        #expect(SHA256Digest(of: message.utf8).hexadecimal == hexadecimal)
    }

    @Test("the text reads back, and small words keep their zeros")
    func roundTrip() throws {
        for number in 0..<200 {
            let digest = SHA256Digest(of: "\(number)".utf8)
            #expect(digest.hexadecimal.utf8.count == 64)
            #expect(SHA256Digest(hexadecimal: digest.hexadecimal.utf8) == digest)
        }
        let zeros = String(repeating: "0", count: 63) + "1"
        #expect(try #require(SHA256Digest(hexadecimal: zeros.utf8)).hexadecimal == zeros)
    }

    @Test("two digests are equal only if every bit is")
    func equality() throws {
        let digest = SHA256Digest(of: "a".utf8)
        var digits = Array(digest.hexadecimal.utf8)
        for index in digits.indices {
            let kept = digits[index]
            digits[index] = kept == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
            #expect(try #require(SHA256Digest(hexadecimal: digits)) != digest, "digit \(index)")
            digits[index] = kept
        }
    }

    @Test(
        "other text is no digest",
        arguments: [
            "", "0", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
            String(repeating: "A", count: 64), String(repeating: "g", count: 64),
            String(repeating: " ", count: 64),
        ])
    func malformed(text: String) {
        #expect(SHA256Digest(hexadecimal: text.utf8) == nil)
    }
}
