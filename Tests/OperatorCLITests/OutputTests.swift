import Testing

@testable import OperatorCLI

@Suite("Table")
struct TableTests {
    private func table(_ rows: [[String]]) -> Table {
        var table = Table([
            .init(title: "NAME", isFlexible: true),
            .init(title: "COUNT", alignment: .right),
            .init(title: "TOPIC", isFlexible: true),
        ])
        for row in rows { table.append(row) }
        return table
    }

    @Test("aligns by display width and leaves no blanks at line ends")
    func aligns() {
        let text = table([["anna", "1", "a/b"], ["日本", "1000", "x"], ["é\u{301}", "20", ""]])
            .rendered(width: nil)
        #expect(
            text == """
                NAME  COUNT  TOPIC
                anna      1  a/b
                日本   1000  x
                é\u{301}        20  \n
                """)
    }

    @Test("escapes control characters for the terminal")
    func escapes() {
        let text = table([["\u{1B}[2J", "1", "a\u{202E}b\nc"]]).rendered(width: nil)
        #expect(text.split(separator: "\n").last == "\\u{1B}[2J      1  a\\u{202E}b\\nc")
    }

    @Test("cuts the widest flexible columns to fit a terminal, and only there")
    func cuts() {
        let long = String(repeating: "x", count: 40)
        let rows = [[long, "123456", "topic/of/some/length"]]
        #expect(table(rows).rendered(width: nil).contains(long))
        let lines = table(rows).rendered(width: 40).split(separator: "\n")
        #expect(lines.allSatisfy { DisplayWidth.of(String($0)) <= 40 })
        #expect(lines.last == "xxxxxxxxxxxxxx…  123456  topic/of/some/…")
    }

    @Test("keeps eight columns of names and four of other cells on a terminal too narrow for more")
    func narrow() {
        var table = Table([
            .init(title: "NAME", isFlexible: true, isName: true),
            .init(title: "COUNT", alignment: .right), .init(title: "TOPIC", isFlexible: true),
        ])
        table.append(["abcdefghijkl", "1", "mnopqrstuvwx"])
        #expect(table.rendered(width: 5).hasSuffix("abcdefg…      1  mno…\n"))
        // Names are whole while anything else can be cut.
        #expect(table.rendered(width: 26).hasSuffix("abcdefghijkl      1  mnop…\n"))
    }

    @Test("cuts wide characters whole and keeps marks with their letter")
    func cutWide() {
        #expect(DisplayWidth.cut("日本語テキスト", to: 6) == "日本…")
        #expect(DisplayWidth.cut("e\u{301}e\u{301}e\u{301}", to: 2) == "e\u{301}…")
        #expect(DisplayWidth.cut("ab", to: 2) == "ab")
        #expect(DisplayWidth.cut("abc", to: 1) == "…")
    }

    @Test(
        "measures text as terminals do",
        arguments: [("abc", 3), ("ä", 1), ("日本", 4), ("한국", 4), ("😀", 2), ("a\u{300}", 1), ("", 0)])
    func width(text: String, columns: Int) {
        #expect(DisplayWidth.of(text) == columns)
    }
}

@Suite("FieldList")
struct FieldListTests {
    @Test("aligns values over all groups and escapes them")
    func renders() {
        var list = FieldList()
        list.startGroup()
        list.add("a", "1")
        list.startGroup()
        list.startGroup()
        list.add("long name", "x\u{7}")
        #expect(list.rendered() == "a          1\n\nlong name  x\\u{7}\n")
    }
}

@Suite("Wording")
struct WordingTests {
    @Test(
        "spans use their two largest units",
        arguments: [
            (-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (200, "3m 20s"), (3_600, "1h"),
            (3_659, "1h"), (7_500, "2h 5m"), (86_400, "1d"), (1_047_600, "12d 3h"),
            (86_400 + 60, "1d"),
        ] as [(Int64, String)])
    func spans(seconds: Int64, text: String) {
        #expect(Wording.span(seconds: seconds) == text)
    }

    @Test(
        "bytes use the largest unit",
        arguments: [
            (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"),
            (10 * 1_024, "10 KiB"), (20 * 1_048_576, "20 MiB"), (10_239, "9.9 KiB"),
        ])
    func bytes(count: Int, text: String) {
        #expect(Wording.bytes(count) == text)
    }

    @Test("the largest count and the oddest clock do not trap")
    func extremes() {
        #expect(Wording.bytes(UInt64.max).hasSuffix("EiB"))
        #expect(Wording.age(of: .min, now: .max) == "0s")
        #expect(Wording.age(of: now + 5_000, now: now) == "0s")
    }

    @Test("counts come in the order of their names, without zeros")
    func counts() {
        #expect(Wording.counts(["b": 2, "a": 1, "c": 0]) == "a 1, b 2")
        #expect(Wording.counts([:]) == "none")
        #expect(Wording.counts(["a": 0]) == "none")
    }

    @Test("moments are in UTC with their age")
    func moments() {
        #expect(Wording.moment(now - 200_000, now: now) == "2025-01-31T07:56:40Z (3m 20s ago)")
    }
}

@Suite("JSONOutput")
struct JSONOutputTests {
    @Test("passes a document on, ended by one line feed")
    func passes() {
        let json = "{\n  \"a\": \"grün \\n \\u001b\"\n}\n\n"
        #expect(JSONOutput.line(Array(json.utf8)) == "{\n  \"a\": \"grün \\n \\u001b\"\n}\n")
    }

    @Test("JSON writes control characters as escapes of the same meaning")
    func escapes() {
        let json = "{\"a\":\"\u{7F}\u{9B}31m\u{202E}\u{E0001}\u{1B}\"}"
        #expect(
            JSONOutput.line(Array(json.utf8))
                == "{\"a\":\"\\u007f\\u009b31m\\u202e\\udb40\\udc01\\u001b\"}\n")
    }
}
