import Testing

@testable import Credentials

@Suite("Bounds of tokens")
struct TokenBoundsTests {
    @Test(
        "a filter matches the topic names that a subscription would get",
        arguments: [
            (
                "orders/#", ["orders", "orders/7", "orders/7/note", "orders/"],
                ["order", "x/orders"]
            ),
            ("orders/+/note", ["orders/7/note", "orders//note"], ["orders/7", "orders/7/note/x"]),
            ("#", ["a", "/", "a/b"], ["$SYS/x", "$x"]), ("+", ["a", ""], ["a/b", "$a"]),
            ("+/+", ["/", "a/b"], ["a", "a/b/c"]), ("$x/#", ["$x/a", "$x"], ["x/a"]),
            ("a", ["a"], ["A", "a/", "/a", "ab", ""]), ("/a", ["/a"], ["a", "//a"]),
        ])
    func matching(filter: String, names: [String], others: [String]) throws {
        let topic = try #require(TokenTopic(filter))
        for name in names { #expect(topic.matches(Array(name.utf8)), "\(name)") }
        for name in others { #expect(!topic.matches(Array(name.utf8)), "\(name)") }
    }

    @Test(
        "other texts are no filters",
        arguments: ["", "a b", "a\t", "a/\n", "a#", "#/a", "a/#/b", "a+", "+a/b", "\u{7F}"])
    func noFilter(text: String) {
        #expect(TokenTopic(text) == nil)
    }

    @Test("a filter has at most 256 bytes")
    func longFilter() {
        #expect(TokenTopic(String(repeating: "a", count: 256)) != nil)
        #expect(TokenTopic(String(repeating: "a", count: 257)) == nil)
    }

    @Test("rates are read and written alike")
    func rates() {
        for text in ["1/s", "500/s", "30/m", "1000000/h"] {
            #expect(TokenRate(text)?.description == text)
        }
        for text in [
            "", "5", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "1/d", "1/s/s", "1000001/s", "1 /s",
            "١/s",
        ] {
            #expect(TokenRate(text) == nil, "\(text)")
        }
        #expect(TokenRate("7/m")?.period == .seconds(60))
    }
}
