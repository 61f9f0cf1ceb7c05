import PlainText
import Testing

@Suite("VisibleText")
struct VisibleTextTests {
    @Test(
        "spells out everything that acts on a terminal or hides",
        arguments: [
            ("plain", "plain"),
            ("grün 日本", "grün 日本"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{1B}[31mred", "\\u{1B}[31mred"),
            ("\u{7F}\u{85}\u{9B}", "\\u{7F}\\u{85}\\u{9B}"),
            ("a\u{202E}b\u{2066}", "a\\u{202E}b\\u{2066}"),
            ("\u{2028}\u{FEFF}\u{200D}", "\\u{2028}\\u{FEFF}\\u{200D}"),
            ("\\u{1B}", "\\\\u{1B}"),
            ("\0\u{7}", "\\u{0}\\u{7}"),
            ("\u{200B}\u{200F}\u{202A}\u{2069}", "\\u{200B}\\u{200F}\\u{202A}\\u{2069}"),
            ("\u{2029}\u{E000}\u{E0041}", "\\u{2029}\\u{E000}\\u{E0041}"),
            ("a\u{3164}b\u{115F}\u{FFA0}", "a\\u{3164}b\\u{115F}\\u{FFA0}"),
            ("\u{34F}\u{FE0F}\u{17B4}", "\\u{34F}\\u{FE0F}\\u{17B4}"),
            ("plain 销 🚚 é", "plain 销 🚚 é"),
        ])
    func escapes(text: String, expected: String) {
        #expect(VisibleText.escaped(text) == expected)
        #expect(VisibleText.escaped(Array(text.utf8)) == expected)
    }

    @Test("shows bytes of invalid UTF-8 one by one")
    func invalidUTF8() {
        #expect(VisibleText.escaped([0x61, 0xFF, 0x0A, 0xC3] as [UInt8]) == "a\\xFF\\n\\xC3")
    }

    @Test("everything dangerous is hidden: C0, DEL, C1, zero width, separators, bidirectional")
    func dangerous() {
        let ranges: [ClosedRange<UInt32>] = [
            0x00...0x1F, 0x7F...0x9F, 0x200B...0x200F, 0x2028...0x202E, 0x2066...0x2069,
            0xFEFF...0xFEFF,
        ]
        for scalar in ranges.joined().compactMap(Unicode.Scalar.init) {
            #expect(VisibleText.needsEscape(scalar), "\(scalar.value)")
            #expect(
                VisibleText.escaped(String(scalar)).utf8.allSatisfy { (0x20...0x7E).contains($0) })
        }
    }

    @Test("long text is cut after a number of scalars")
    func cut() {
        #expect(VisibleText.escaped("ab\nc", limit: 3) == "ab\\n…")
        #expect(VisibleText.escaped("a\\c", limit: 3) == "a\\\\c")
        #expect("äöü".visible(limit: 2) == "äö…")
    }

    @Test("quotation marks within quoted text are escaped, backslashes of others stay single")
    func quoting() {
        #expect(VisibleText.quoted("a\"b\\\n\"") == #""a\"b\\\n\"""#)
        #expect(VisibleText.printable("\\u{1B} \u{1B}") == "\\u{1B} \\u{1B}")
    }

    @Test("a quotation mark stays one when a combining mark follows it")
    func quotingBeforeMarks() {
        let quoted = VisibleText.quoted("a\"\u{301}b")
        #expect(quoted.unicodeScalars.elementsEqual("\"a\\\"\u{301}b\"".unicodeScalars))
    }
}
