import RequestText
import Testing

@Suite("JSON that is written")
struct JSONBytesTests {
    @Test(
        "the parser reads each string back",
        arguments: ["", "a", "\"\\/", "\0\u{1}\u{1F}\u{7F}", "\n\r\t", "销🚚\u{2028}", "e\u{301}"])
    func strings(text: String) throws {
        var json = JSONBytes()
        json.string(text)
        guard case .string(let read) = try JSONParser.parse(json.bytes) else {
            Issue.record("no string")
            return
        }
        #expect(read.utf8.elementsEqual(text.utf8))
        #expect(json.bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
    }

    @Test("an object has its members in their order")
    func object() {
        var json = JSONBytes()
        json.object([("b", .number("1.0")), ("a\"", .bool(true)), ("c", .string("x"))])
        #expect(json.bytes == Array(#"{"b":1.0,"a\"":true,"c":"x"}"#.utf8))
    }
}
