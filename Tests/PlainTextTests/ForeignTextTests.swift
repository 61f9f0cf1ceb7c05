import PlainText
import Testing

@Suite("ForeignText")
struct ForeignTextTests {
    @Test("texts that Unicode calls equivalent are two, as their bytes are")
    func bytes() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        #expect(composed == decomposed)
        #expect(ForeignText(composed) != ForeignText(decomposed))
        #expect(Set([composed, decomposed].map { ForeignText($0) }).count == 2)
        #expect(ForeignText(decomposed) < ForeignText(composed))
        #expect(!composed.hasBytes(of: decomposed))
    }

    @Test("the order is that of the bytes")
    func order() {
        let texts: [ForeignText] = ["b", "", "\u{1F69A}", "a\u{301}", "a", "ab", "\u{FF5E}"]
        #expect(
            texts.sorted().map(\.string)
                == ["", "a", "ab", "a\u{301}", "b", "\u{FF5E}", "\u{1F69A}"])
    }

    /// Marks of two classes, of which Unicode puts the second before the first: it takes seconds to
    /// normalise one such `String` for a comparison or a hash.
    @Test("a run of combining marks costs its length to compare, to sort and to hash")
    func marks() {
        let marks =
            String(repeating: "\u{301}", count: 25_000)
            + String(repeating: "\u{316}", count: 25_000)
        let texts = (0..<100).map { ForeignText("\($0)\(marks)") }
        let time = ContinuousClock().measure {
            #expect(Set(texts).count == 100)
            #expect(texts.sorted().count == 100)
            #expect(!marks.begins(with: "a") && marks.parts(separator: "/").count == 1)
        }
        #expect(time < .seconds(10), "\(time)")
    }

    @Test("a separator with a combining mark after it is a separator")
    func parts() {
        #expect("a/\u{301}b/c".parts(separator: "/") == ["a", "\u{301}b", "c"])
        #expect("a//b/".parts(separator: "/") == ["a", "", "b", ""])
        #expect("a//b/".parts(separator: "/", omittingEmpty: true) == ["a", "b"])
        #expect("a/b/c".parts(separator: "/", maxSplits: 1) == ["a", "b/c"])
        #expect("".parts(separator: "/") == [""])
        #expect("".parts(separator: "/", omittingEmpty: true) == [])
        #expect(" a \t\u{301}b ".words == ["a", "\u{301}b"])
        #expect("".words == [])
    }

    @Test("a prefix is one of bytes")
    func prefixes() {
        #expect("topic:\u{301}".text(after: "topic:") == "\u{301}")
        #expect("topic".text(after: "topic:") == nil)
        #expect("a".text(after: "") == "a")
        #expect("\u{E9}".begins(with: "\u{E9}") && !"\u{E9}".begins(with: "e"))
    }
}
