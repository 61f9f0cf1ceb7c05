import PlainText
import Testing

@Suite("Bytes as text")
struct EncodingTests {
    @Test(
        "base 64 is that of RFC 4648, section 10",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
        ])
    func base64(text: String, encoded: String) {
        #expect(Base64.text(of: Array(text.utf8)) == encoded)
        #expect(Base64.urlText(of: Array(text.utf8)) == encoded.filter { $0 != "=" })
    }

    @Test("the alphabets differ in two letters")
    func alphabets() {
        let bytes: [UInt8] = [0xFB, 0xFF, 0xBF]
        #expect(Base64.text(of: bytes) == "+/+/")
        #expect(Base64.urlText(of: bytes) == "-_-_")
    }

    @Test("hexadecimal digits are small, with their leading zeros")
    func hexadecimal() {
        #expect(Hexadecimal.text(of: [0x00, 0x0A, 0xF0, 0xFF]) == "000af0ff")
        #expect(Hexadecimal.text(of: [UInt8]()) == "")
        #expect(Hexadecimal.text(of: UInt64(0xAB)) == "00000000000000ab")
        #expect(Hexadecimal.text(of: UInt64.max) == "ffffffffffffffff")
    }

    @Test("a UUID has its usual form")
    func uuid() {
        #expect(
            UUIDText.text(high: 0x0123_4567_89AB_7DEF, low: 0x8000_0000_0000_00FF)
                == "01234567-89ab-7def-8000-0000000000ff")
    }
}
