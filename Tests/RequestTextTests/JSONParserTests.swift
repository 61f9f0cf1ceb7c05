import HermesTesting
import PlainText
import RequestText
import Testing

@Suite("JSON")
struct JSONParserTests {
    @Test("every kind of value is read, numbers as they are written")
    func values() throws {
        let text =
            #" { "a" : [ null, true, false, -0.5e+10, 12345678901234567890 ], "b":{},"c":[]}"#
        #expect(
            try JSONParser.parse(Array((text + "\r\n\t ").utf8))
                == .object([
                    JSONMember(
                        name: "a",
                        value: .array([
                            .null, .bool(true), .bool(false), .number("-0.5e+10"),
                            .number("12345678901234567890"),
                        ])),
                    JSONMember(name: "b", value: .object([])),
                    JSONMember(name: "c", value: .array([])),
                ]))
    }

    @Test(
        "strings and their escapes are read",
        arguments: [
            (#""""#, ""), (#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{C}\n\r\t"),
            (#""\u0041\u00e9\u20AC\u0000""#, "Aé€\0"), (#""\ud83d\ude9A!""#, "🚚!"),
            (#""销🚚""#, "销🚚"),
        ])
    func strings(json: String, value: String) throws {
        #expect(try JSONParser.parse(Array(json.utf8)) == .string(ForeignText(value)))
    }

    @Test(
        "an object may have any number of members, and each name once",
        arguments: [1, 15, 16, 17, 400])
    func manyMembers(count: Int) throws {
        let members = (0..<count).map { "\"name \($0)\":\($0)" }
        let text = "{" + members.joined(separator: ",") + "}"
        guard case .object(let read) = try JSONParser.parse(Array(text.utf8)) else {
            Issue.record("no object")
            return
        }
        #expect(read.map(\.name.string) == (0..<count).map { "name \($0)" })
        for repeated in [0, count - 1] {
            let twice = "{" + (members + ["\"name \(repeated)\":0"]).joined(separator: ",") + "}"
            let error = #expect(throws: JSONSyntaxError.self) {
                try JSONParser.parse(Array(twice.utf8))
            }
            #expect(error?.reason.contains("occurs twice") == true)
        }
    }

    /// Two such names as `String`s take seconds to compare: Unicode puts the second half before the
    /// first.
    @Test(
        "names of combining marks cost their length, among few names and many",
        arguments: [2, 40])
    func marks(count: Int) throws {
        let marks =
            String(repeating: "\u{301}", count: 40_000)
            + String(repeating: "\u{316}", count: 40_000)
        let members = (0..<count).map { "\"\($0)\(marks)\":\($0)" }
        let text = Array("{\(members.joined(separator: ","))}".utf8)
        let time = try ContinuousClock().measure {
            guard case .object(let read) = try JSONParser.parse(text) else {
                Issue.record("no object")
                return
            }
            #expect(read.count == count)
        }
        #expect(time < .seconds(10), "\(time)")
    }

    @Test("names that differ in bytes are two names, though Unicode calls them equivalent")
    func equivalentNames() throws {
        let text = "{\"\u{E9}\":1,\"e\u{301}\":2}"
        guard case .object(let read) = try JSONParser.parse(Array(text.utf8)) else {
            Issue.record("no object")
            return
        }
        #expect(read.map(\.value) == [.number("1"), .number("2")])
        #expect(JSONValue.string("\u{E9}") != .string("e\u{301}"))
    }

    @Test(
        "invalid JSON is rejected at its first invalid byte",
        arguments: [
            ("", 1, 1), ("  ", 1, 3), ("{", 1, 2), ("[1,]", 1, 4), ("[1 2]", 1, 4),
            ("{\"a\":1,}", 1, 8), ("{a:1}", 1, 2), ("{'a':1}", 1, 2), ("{\"a\" 1}", 1, 6),
            ("{\"a\":1,\n \"a\":2}", 2, 2), ("tru", 1, 1), ("nul", 1, 1), ("True", 1, 1),
            ("01", 1, 2), ("-", 1, 2), ("1.", 1, 3), ("1e", 1, 3), ("+1", 1, 1), (".5", 1, 1),
            ("1 2", 1, 3), ("\"a", 1, 3), ("\"\n\"", 1, 2), ("\"\\x\"", 1, 3),
            ("\"\\u12g4\"", 1, 6), ("\"\\ud800\"", 1, 4), ("\"\\ude00\"", 1, 4),
            ("\"\\ud800\\u0041\"", 1, 4), ("NaN", 1, 1), ("[1]\n]", 2, 1), ("\u{FEFF}{}", 1, 1),
        ])
    func errors(json: String, line: Int, column: Int) {
        let error = #expect(throws: JSONSyntaxError.self) {
            try JSONParser.parse(Array(json.utf8))
        }
        #expect(error?.line == line)
        #expect(error?.column == column)
    }

    @Test(
        "strings that are not UTF-8 are refused",
        arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF5, 0x80, 0x80, 0x80]])
    func notUTF8(bytes: [UInt8]) {
        #expect(throws: JSONSyntaxError.self) {
            try JSONParser.parse([0x22] + bytes + [0x22])
        }
    }

    @Test("nesting has a limit")
    func depth() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        _ = try JSONParser.parse(nested(JSONParser.maximumDepth))
        #expect(throws: JSONSyntaxError.self) {
            try JSONParser.parse(nested(JSONParser.maximumDepth + 1))
        }
        #expect(throws: JSONSyntaxError.self) {
            try JSONParser.parse([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000))
        }
    }

    @Test("any bytes give a value or an error", arguments: UInt64(1)...20)
    func anyBytes(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let alphabet = Array(#"{}[]:,"\utfn01e-. "#.utf8) + [0, 0xC3, 0xFF]
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                alphabet[Int.random(in: alphabet.indices, using: &generator)]
            }
            do {
                _ = try JSONParser.parse(bytes)
            } catch {
                #expect((1...bytes.count + 1).contains(error.column), "seed \(seed): \(bytes)")
            }
        }
    }
}
