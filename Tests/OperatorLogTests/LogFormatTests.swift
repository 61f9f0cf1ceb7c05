import Logging
import PlainText
import Testing

@testable import OperatorLog

@Suite("Lines of the log")
struct LogFormatTests {
    static let time = Timestamp(milliseconds: 1_795_230_245_123)

    private func line(
        _ format: LogFormat, _ message: String = "Message", _ metadata: Logger.Metadata = [:],
        level: Logger.Level = .info
    ) -> String {
        let bytes = format.line(
            at: Self.time, level: level, label: "hermes", message: message, metadata: metadata)
        return String(validating: bytes, as: UTF8.self) ?? "not UTF-8"
    }

    /// The value of the only metadata key in text format.
    private func value(_ value: Logger.MetadataValue) -> String {
        let prefix = "2026-11-21T03:04:05.123Z INFO  Message k="
        let line = line(.text, "Message", ["k": value])
        #expect(line.hasPrefix(prefix))
        #expect(line.hasSuffix("\n"))
        return String(line.dropFirst(prefix.count).dropLast())
    }

    @Test("text: time, level, message, metadata in the order of keys")
    func text() {
        #expect(
            line(
                .text, "Connection closed after a protocol violation",
                ["mqtt.statement": "MQTT-3.1.0-2", "connection.id": "17"])
                == "2026-11-21T03:04:05.123Z INFO  Connection closed after a protocol violation connection.id=17 mqtt.statement=MQTT-3.1.0-2\n"
        )
    }

    @Test("JSON: one object with strings, the reserved names kept apart")
    func json() {
        #expect(
            line(.json, "Say \"hi\"", ["a.b": "c\\d", "level": "x", "n": .stringConvertible(5)])
                == "{\"time\":\"2026-11-21T03:04:05.123Z\",\"level\":\"info\",\"logger\":\"hermes\",\"message\":\"Say \\\"hi\\\"\",\"a.b\":\"c\\\\d\",\"metadata.level\":\"x\",\"n\":5}\n"
        )
    }

    @Test(
        "JSON: counts, sizes and truth values are no strings, and names of digits are",
        arguments: [
            ("http.status", "404", "404"), ("delay_ms", "0", "0"), ("payload.bytes", "12", "12"),
            ("session.clean", "true", "true"), ("log.suppressed", "3", "3"),
            ("client.id", "4711", "\"4711\""), ("topic", "true", "\"true\""),
            ("delay_ms", "007", "\"007\""), ("delay_ms", "", "\"\""),
            ("messages", "9999999999999999", "\"9999999999999999\""),
        ])
    func jsonWords(key: String, value: String, shown: String) {
        #expect(
            line(.json, "m", [key: "\(value)"]).hasSuffix(
                "\"message\":\"m\",\"\(key)\":\(shown)}\n"))
    }

    @Test("a mistake for which the broker ends is a line of JSON too")
    func fatal() {
        let line = String(decoding: LogFormat.fatalLine("a.yaml:1: x: \"y\""), as: UTF8.self)
        #expect(
            line.hasSuffix(
                "\"level\":\"critical\",\"logger\":\"hermesd\",\"message\":\"The broker ends\","
                    + "\"problem\":\"a.yaml:1: x: \\\"y\\\"\"}\n"))
    }

    @Test("levels are named in full, the short ones padded", arguments: Logger.Level.allCases)
    func levels(level: Logger.Level) {
        let name = level.rawValue.uppercased()
        let padded = name.count < 5 ? name + " " : name
        #expect(line(.text, level: level) == "2026-11-21T03:04:05.123Z \(padded) Message\n")
    }

    static let values: [(value: String, text: String)] = [
        ("plain-value_1.0/x:y", "plain-value_1.0/x:y"),
        ("", "\"\""),
        ("two words", "\"two words\""),
        ("a=b", "\"a=b\""),
        ("quote\"", "\"quote\\\"\""),
        ("back\\slash", "\"back\\\\slash\""),
        ("line\nfeed\r\ttab", "\"line\\nfeed\\r\\ttab\""),
        ("\u{1B}[31mred\u{1B}[0m", "\"\\u{1B}[31mred\\u{1B}[0m\""),
        ("nul\0", "\"nul\\u{0}\""),
        ("del\u{7F}", "\"del\\u{7F}\""),
        ("c1\u{9B}2J", "\"c1\\u{9B}2J\""),
        ("right\u{202E}left", "\"right\\u{202E}left\""),
        ("isolate\u{2066}\u{2069}", "\"isolate\\u{2066}\\u{2069}\""),
        ("separators\u{2028}\u{2029}\u{85}", "\"separators\\u{2028}\\u{2029}\\u{85}\""),
        ("zero\u{200B}width\u{FEFF}", "\"zero\\u{200B}width\\u{FEFF}\""),
        ("tag\u{E0041}", "\"tag\\u{E0041}\""),
        ("Zürich 😀", "\"Zürich 😀\""),
    ]

    @Test("text values are quoted and escaped when they need it", arguments: values)
    func escaping(value: String, text: String) {
        #expect(self.value(.string(value)) == text)
        #expect(self.value(.bytes(Array(value.utf8))) == text)
        #expect(self.value(.stringConvertible(Substring(value))) == text)
    }

    @Test("JSON escapes unsafe characters, beyond U+FFFF as two units")
    func jsonEscaping() {
        let line = line(.json, "a\u{1B}\n\u{202E}", ["k": "\u{E0041}\u{7F}é", "b": .bytes([0xFF])])
        #expect(
            line.hasSuffix(
                "\"message\":\"a\\u001B\\n\\u202E\",\"b\":\"\\uFFFD\",\"k\":\"\\uDB40\\uDC41\\u007Fé\"}\n"
            ))
    }

    static let invalidBytes: [(bytes: [UInt8], text: String)] = [
        ([0xFF, 0x61], "\"\\xFFa\""),
        ([0xC0, 0xAF], "\"\\xC0\\xAF\""),
        ([0xE0, 0x80, 0x80], "\"\\xE0\\x80\\x80\""),
        ([0xED, 0xA0, 0x80], "\"\\xED\\xA0\\x80\""),
        ([0xF4, 0x90, 0x80, 0x80], "\"\\xF4\\x90\\x80\\x80\""),
        ([0xE2, 0x82], "\"\\xE2\\x82\""),
        ([0xE2, 0x82, 0x41], "\"\\xE2\\x82A\""),
        ([0xF0, 0x9F, 0x98, 0x80], "\"😀\""),
        ([0x80], "\"\\x80\""),
        ([], "\"\""),
    ]

    @Test("bytes that are not UTF-8 are shown one by one", arguments: invalidBytes)
    func invalid(bytes: [UInt8], text: String) {
        #expect(value(.bytes(bytes)) == text)
        #expect(LoggedBytes(bytes).description == String(decoding: bytes, as: UTF8.self))
    }

    @Test("the decoder agrees with the standard library on every two and three byte start")
    func decoderAgrees() {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                for tail: [UInt8] in [[], [0x80], [0xBF, 0x80], [0x41]] {
                    let bytes = [first, second] + tail
                    var position = 0
                    var isValid = true
                    while let unit = UTF8Scanner.next(in: bytes.span, at: &position) {
                        if case .invalid = unit { isValid = false }
                    }
                    #expect(
                        isValid == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
                }
            }
        }
    }

    @Test("long values are cut with the number of bytes that are missing")
    func cut() {
        let exact = String(repeating: "x", count: 256)
        #expect(value(.string(exact)) == exact)
        #expect(value(.string(exact + "yz")) == "\"\(exact)…(+2 bytes)\"")
        let wide = String(repeating: "é", count: 300)
        #expect(value(.string(wide)) == "\"\(wide.prefix(256))…(+88 bytes)\"")

        // What hides is written as ten bytes, which count.
        let hidden = value(.string(String(repeating: "\u{202E}", count: 1_024)))
        #expect(hidden.utf8.count < 300 && hidden.hasSuffix("bytes)\""))

        let mistake = String(repeating: "é", count: 1_100)
        let kept = "\"\(mistake.prefix(1_024))…(+152 bytes)\""
        #expect(line(.text, "m", ["problem": .string(mistake)]).hasSuffix(" problem=\(kept)\n"))
        #expect(line(.json, "m", ["problem": .string(mistake)]).contains("\"problem\":\(kept)"))
        let large = [UInt8](repeating: 0x78, count: 1_000_000)
        #expect(LoggedBytes(large).kept.count < 2_000)
        #expect(value(.bytes(large)) == "\"\(exact)…(+999744 bytes)\"")
        let message = String(repeating: "m", count: 2_000)
        #expect(line(.text, message).hasSuffix("m…(+976 bytes)\n"))
    }

    @Test("nested metadata is flattened, and its number and depth are bounded")
    func nested() {
        #expect(
            line(.text, "M", ["a": ["c": ["x", "y z"], "b": "1"], "empty": [:]])
                == "2026-11-21T03:04:05.123Z INFO  M a.b=1 a.c.0=x a.c.1=\"y z\"\n")
        let many: Logger.Metadata = ["a": .array((0..<100).map { "\($0)" })]
        #expect(line(.text, "M", many).hasSuffix(" a.63=63 log.omitted=36\n"))
        var deep: Logger.MetadataValue = "x"
        for _ in 0..<100 { deep = .array([deep]) }
        #expect(
            line(.json, "M", ["d": deep]).hasSuffix("\"message\":\"M\",\"log.omitted\":1}\n"))
    }

    @Test("a key or a message of another package cannot break the line")
    func hostileKeys() {
        #expect(
            line(.text, "two\nlines", ["a b\n=": "v"])
                == "2026-11-21T03:04:05.123Z INFO  two\\nlines \"a b\\n=\"=v\n")
        #expect(
            line(.json, "m", ["a\"\n": "v"]).hasSuffix("\"message\":\"m\",\"a\\\"\\n\":\"v\"}\n"))
    }

    static let times: [(milliseconds: Int64, text: String)] = [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
        (1_735_689_600_000, "2025-01-01T00:00:00.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ]

    @Test("times are written in UTC", arguments: times)
    func timestamps(milliseconds: Int64, text: String) {
        #expect(
            String(decoding: Timestamp(milliseconds: milliseconds).text, as: UTF8.self) == text)
    }
}
