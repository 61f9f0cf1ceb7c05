import Credentials
import Testing

@Suite("UserName")
struct UserNameTests {
    @Test(
        "accepts ordinary names byte for byte",
        arguments: ["anna", "phone-17", "Jürgen", "sales team", "a", "back\\slash", "用户", "x@y.z"])
    func accepts(name: String) throws {
        #expect(try UserName(name).bytes == Array(name.utf8))
        #expect(try UserName(name).text == name)
    }

    @Test(
        "rejects characters that end a name, act as wildcards or are invisible",
        arguments: [
            ("", UserNameError.empty),
            ("a:b", .reservedCharacter(":")),
            ("a/b", .reservedCharacter("/")),
            ("+", .reservedCharacter("+")),
            ("#", .reservedCharacter("#")),
            ("a\u{0}", .invisibleCharacter(codePoint: 0)),
            ("a\u{1B}[31m", .invisibleCharacter(codePoint: 0x1B)),
            ("a\nb", .invisibleCharacter(codePoint: 0x0A)),
            ("a\u{7F}", .invisibleCharacter(codePoint: 0x7F)),
            ("a\u{9B}", .invisibleCharacter(codePoint: 0x9B)),
            ("a\u{202E}b", .invisibleCharacter(codePoint: 0x202E)),
            ("a\u{200B}b", .invisibleCharacter(codePoint: 0x200B)),
            ("a\u{2028}b", .invisibleCharacter(codePoint: 0x2028)),
            ("\u{FEFF}a", .invisibleCharacter(codePoint: 0xFEFF)),
            ("a\u{3164}b", .invisibleCharacter(codePoint: 0x3164)),
            ("anna\u{FFA0}", .invisibleCharacter(codePoint: 0xFFA0)),
            ("anna\u{34F}", .invisibleCharacter(codePoint: 0x34F)),
            (" a", .blankAtEnd),
            ("a ", .blankAtEnd),
            ("a\u{A0}", .blankAtEnd),
        ])
    func refuses(name: String, error: UserNameError) {
        #expect(throws: error) { try UserName(name) }
    }

    @Test("refuses bytes that are no UTF-8", arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80]])
    func refusesInvalidUTF8(bytes: [UInt8]) {
        #expect(throws: UserNameError.notUTF8) { try UserName(bytes) }
    }

    @Test("ends at 256 bytes, not characters")
    func length() throws {
        #expect(try UserName(String(repeating: "ü", count: 128)).bytes.count == 256)
        #expect(throws: UserNameError.tooLong(byteCount: 257)) {
            try UserName(String(repeating: "ü", count: 128) + "a")
        }
    }

    @Test("names of equal look and different bytes are different users")
    func noNormalisation() throws {
        #expect(try UserName("J\u{FC}rgen") != UserName("Ju\u{308}rgen"))
    }
}
