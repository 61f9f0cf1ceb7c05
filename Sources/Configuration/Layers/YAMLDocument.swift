/// The text of a configuration file, parsed into nodes that know their lines.
package struct YAMLDocument {
    /// `nil` for a file without content.
    package let root: YAMLNode?

    /// A syntax error; the line counts from 1.
    package struct SyntaxError: Error {
        package let line: Int?
        package let complaint: String
        package let cure: String
    }

    /// Bounds unfolded aliases: 16 in the worst arrangement repeat a text about 400 times.
    static let maximumAliases = 16
    /// Bounds the recursion.
    package static let maximumDepth = 32

    /// Parses UTF-8 bytes.
    ///
    /// - Throws: `SyntaxError` for text that is no YAML.
    package init(bytes: [UInt8]) throws(SyntaxError) {
        try Self.checkText(bytes)
        root = try bytes.withUnsafeBufferPointer { (bytes) throws(SyntaxError) in
            // A byte order mark is no content (YAML 1.2, section 5.2), but libyaml passes over it
            // only where it finds out the encoding itself.
            let mark = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
            let text = UnsafeBufferPointer(rebasing: bytes.dropFirst(mark))
            var composer = YAMLComposer(events: try YAMLEvents(reading: text))
            return try composer.root()
        }
    }

    /// Rejects characters that YAML forbids, with their line.
    private static func checkText(_ bytes: [UInt8]) throws(SyntaxError) {
        var line = 1
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n"): line += 1
            case UInt8(ascii: "\t"), UInt8(ascii: "\r"), 0x20..<0x7F, 0x80...: break
            default:
                let code = String(byte, radix: 16, uppercase: true)
                throw SyntaxError(
                    line: line,
                    complaint: "holds the control character U+00\(byte < 16 ? "0" : "")\(code)",
                    cure: "Save the file as UTF-8 text without it.")
            }
        }
        guard String(validating: bytes, as: UTF8.self) == nil else { return }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let invalid = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil }
        throw SyntaxError(
            line: invalid.map { $0 + 1 }, complaint: "holds bytes that are not UTF-8",
            cure: "Save the file as UTF-8 text.")
    }
}

extension YAMLDocument.SyntaxError {
    /// A syntax error in the parser's words.
    init(_ problem: String, line: Int, column: Int) {
        self.init(
            line: line,
            complaint: "the YAML cannot be read at column \(column): \(shown(problem))",
            cure:
                "Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        )
    }
}
