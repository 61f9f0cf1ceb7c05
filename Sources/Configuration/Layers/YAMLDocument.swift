import Yams

/// The text of a configuration file, parsed into nodes that know their lines.
struct YAMLDocument {
    /// `nil` for a file without content.
    let root: Node?
    /// Keys that the file gives twice, by the mark that stands in the tree for the earlier one.
    let earlierKeys: [String: EarlierKey]

    /// A key of which a later one with the same name exists in its mapping.
    struct EarlierKey {
        let name: String
        let line: Int
    }

    /// Why a text is no YAML that we read; the line counts from 1.
    struct SyntaxError: Error {
        let line: Int?
        let complaint: String
        let cure: String
    }

    /// More aliases than any configuration needs. Their number bounds what they can unfold to:
    /// 16 aliases in the worst arrangement repeat a text some 400 times.
    static let maximumAliases = 16
    /// Duplicate keys beyond this end the search for more of them.
    static let maximumDuplicates = 32

    /// Parses UTF-8 bytes.
    ///
    /// The parser gives up at the first duplicate key and names only where the earlier one
    /// stands. That one is renamed to a mark that no file holds, and parsing starts again, so
    /// that all duplicates are found together with all other problems.
    ///
    /// - Throws: `SyntaxError` for text that is no YAML.
    init(bytes: [UInt8]) throws(SyntaxError) {
        var text = try Self.text(of: bytes)
        try Self.checkAliases(text)
        var earlierKeys: [String: EarlierKey] = [:]
        while true {
            do {
                // The basic resolver leaves values as text, and so `1` and `01` are two keys.
                let parser = try Parser(yaml: text, resolver: .basic, encoding: .utf8)
                root = try parser.singleRoot()
                self.earlierKeys = earlierKeys
                return
            } catch YamlError.duplicatedKeysInMapping(let names, let context) {
                // The context's mark is that of the first name in sorted order.
                guard let name = names.min(), earlierKeys.count < Self.maximumDuplicates,
                    let renamed = Self.rename(
                        name, at: context.mark, to: "\u{E000}\(earlierKeys.count)", in: text)
                else {
                    throw SyntaxError(
                        line: context.mark.line,
                        complaint: "the key \(quoted(names.min() ?? "")) is given more than once",
                        cure: "Keep one of them.")
                }
                earlierKeys["\u{E000}\(earlierKeys.count)"] = EarlierKey(
                    name: name, line: context.mark.line)
                text = renamed
            } catch let error as YamlError {
                throw Self.syntaxError(error)
            } catch {
                throw SyntaxError(
                    line: nil, complaint: "the file is not YAML", cure: "Correct its syntax.")
            }
        }
    }

    /// The bytes as text; refuses what YAML cannot hold, with its line.
    private static func text(of bytes: [UInt8]) throws(SyntaxError) -> String {
        var line = 1
        for byte in bytes {
            if byte == UInt8(ascii: "\n") { line += 1 }
            guard byte < 0x20 || byte == 0x7F, ![0x09, 0x0A, 0x0D].contains(byte) else { continue }
            throw SyntaxError(
                line: line,
                complaint:
                    "holds the control character U+00\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))",
                cure: "Save the file as UTF-8 text without it.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SyntaxError(
                line: firstInvalidLine(bytes), complaint: "holds bytes that are not UTF-8",
                cure: "Save the file as UTF-8 text.")
        }
        guard !text.unicodeScalars.contains("\u{E000}") else {
            throw SyntaxError(
                line: nil, complaint: "holds the private character U+E000",
                cure: "Delete it.")
        }
        return text
    }

    private static func firstInvalidLine(_ bytes: [UInt8]) -> Int? {
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            if String(validating: line, as: UTF8.self) == nil { return number }
        }
        return nil
    }

    /// Counts what looks like an alias (`*name` where a value or key may begin), also where
    /// quotes or comments make it harmless: too many is an odd file in any case.
    private static func checkAliases(_ text: String) throws(SyntaxError) {
        let openers = Set(" \t\n[{,:-?".utf8)
        var count = 0
        var line = 1
        var previous = UInt8(ascii: "\n")
        var isAfterOpener = false
        var hasAnchor = false
        for byte in text.utf8 {
            if isAfterOpener, !openers.contains(byte), byte != 0x0D {
                if previous == UInt8(ascii: "&") { hasAnchor = true }
                if previous == UInt8(ascii: "*") { count += 1 }
            }
            if hasAnchor, count > maximumAliases {
                throw SyntaxError(
                    line: line, complaint: "holds more than \(maximumAliases) aliases",
                    cure: "Write the values out.")
            }
            isAfterOpener = openers.contains(previous)
            if byte == UInt8(ascii: "\n") { line += 1 }
            previous = byte
        }
    }

    /// Puts `replacement` where the key `name` stands; `nil` when something else is there, such
    /// as an alias or an anchor.
    private static func rename(
        _ name: String, at mark: Mark, to replacement: String, in text: String
    ) -> String? {
        let lines = text.unicodeScalars.split(
            maxSplits: mark.line - 1, omittingEmptySubsequences: false,
            whereSeparator: { $0 == "\n" })
        guard mark.line >= 1, mark.column >= 1, lines.count >= mark.line else { return nil }
        let rest = lines[mark.line - 1].dropFirst(mark.column - 1)
        for spelling in [name, "\"\(name)\"", "'\(name)'"]
        where rest.starts(with: spelling.unicodeScalars) {
            let end = text.unicodeScalars.index(
                rest.startIndex, offsetBy: spelling.unicodeScalars.count)
            return String(text[..<rest.startIndex]) + replacement + String(text[end...])
        }
        return nil
    }

    private static func syntaxError(_ error: YamlError) -> SyntaxError {
        let cure =
            "Check this line and the one above: indent with spaces, put a space behind each colon, close quotes and brackets."
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            return SyntaxError(
                line: mark.line,
                complaint: "the YAML cannot be read at column \(mark.column): \(shown(problem))",
                cure: cure)
        case .reader(let problem, _, _, _):
            return SyntaxError(
                line: nil, complaint: "the YAML cannot be read: \(shown(problem))",
                cure: "Save the file as UTF-8 text.")
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded,
            .duplicatedKeysInMapping:
            return SyntaxError(
                line: nil, complaint: "the YAML cannot be read", cure: "Correct its syntax.")
        }
    }
}
