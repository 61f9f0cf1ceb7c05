import RequestText

/// Any bytes are one JSON text or ``JSONSyntaxError``.
///
/// An input is a text. Checked are: an error names a place within the text, and prints nothing of it
/// that acts on a terminal; a value is no larger and deeper than the text may make it, no object has
/// a name twice, the value written out is read as the same value, and no beginning of the text is
/// another whole one.
enum JSONCheck {
    /// The size of a value.
    private struct Size {
        var values = 0
        var textBytes = 0
        var depth = 0
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let parsed = parse(input)
        trace?("\(input.count) bytes: \(parsed)")
        switch parsed {
        case .failure(let error): try check(error, in: input)
        case .success(let value):
            var size = Size()
            try measure(value, depth: 0, &size)
            try CheckFailure.unless(
                size.values <= input.count && size.textBytes <= input.count
                    && size.depth <= JSONParser.maximumDepth,
                "\(size) out of \(input.count) bytes")
            let written = text(of: value)
            guard case .success(let again) = parse(written), text(of: again) == written else {
                throw CheckFailure("\(value) is read from its own text as \(parse(written))")
            }
            try checkBeginnings(of: input, value)
        }
    }

    private static func check(
        _ error: JSONSyntaxError, in input: [UInt8]
    ) throws(CheckFailure) {
        try PrintedText.check(error.description)
        try PrintedText.check(line: error.line, in: input)
        let lines = input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        try CheckFailure.unless(
            (1...lines[error.line - 1].count + 1).contains(error.column),
            "\(error) in a line of \(lines[error.line - 1].count) bytes")
        // The beginning up to the complaint is as good as it is in the whole text: it is whole, or it
        // is not, and then no earlier byte is to blame.
        let before = lines[..<(error.line - 1)].reduce(0) { $0 + $1.count + 1 } + error.column - 1
        if case .failure(let earlier) = parse([UInt8](input.prefix(before))) {
            try CheckFailure.unless(
                (earlier.line, earlier.column) <= (error.line, error.column),
                "\(error), and of the bytes before it: \(earlier)")
        }
    }

    /// A text that ends with a bracket or quote is whole with its last byte, and not before.
    private static func checkBeginnings(
        of input: [UInt8], _ value: JSONValue
    ) throws(CheckFailure) {
        if case .number = value { return }
        let end = (input.lastIndex { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } ?? 0)
        for count in stride(from: 0, through: end, by: max(1, end / 16)) {
            guard case .failure = parse([UInt8](input.prefix(count))) else {
                throw CheckFailure("the first \(count) bytes are a whole text")
            }
        }
    }

    private static func measure(
        _ value: JSONValue, depth: Int, _ size: inout Size
    ) throws(CheckFailure) {
        size.values += 1
        size.depth = max(size.depth, depth)
        switch value {
        case .null, .bool: break
        case .number(let text): size.textBytes += text.utf8.count
        case .string(let text): size.textBytes += text.utf8.count
        case .array(let elements):
            for element in elements { try measure(element, depth: depth + 1, &size) }
        case .object(let members):
            let names = Set(members.map(\.name))
            try CheckFailure.unless(names.count == members.count, "a name is there twice")
            for member in members {
                size.textBytes += member.name.utf8.count
                try measure(member.value, depth: depth + 1, &size)
            }
        }
    }

    /// The value written out, with every character of a string but letters and digits escaped.
    private static func text(of value: JSONValue) -> [UInt8] {
        switch value {
        case .null: Array("null".utf8)
        case .bool(let flag): Array("\(flag)".utf8)
        case .number(let text): Array(text.utf8)
        case .string(let text): quoted(text.string)
        case .array(let elements):
            Array("[".utf8) + elements.map(text).joined(separator: Array(",".utf8))
                + Array("]".utf8)
        case .object(let members):
            Array("{".utf8)
                + members.map { quoted($0.name.string) + Array(":".utf8) + text(of: $0.value) }
                .joined(separator: Array(",".utf8)) + Array("}".utf8)
        }
    }

    private static func quoted(_ text: String) -> [UInt8] {
        var result = "\""
        for scalar in text.unicodeScalars {
            guard !scalar.isASCII || !scalar.properties.isAlphabetic else {
                result.unicodeScalars.append(scalar)
                continue
            }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return Array((result + "\"").utf8)
    }

    private static func parse(_ bytes: [UInt8]) -> Result<JSONValue, JSONSyntaxError> {
        do throws(JSONSyntaxError) {
            return .success(try JSONParser.parse(bytes))
        } catch {
            return .failure(error)
        }
    }
}
