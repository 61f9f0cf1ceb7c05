import PlainText

/// A strict parser of JSON (RFC 8259) that reports the place of an error.
///
/// Foundation's decoder accepts repeated names and hides places. Misread input would be published,
/// so both matter.
package struct JSONParser {
    /// Largest nesting of arrays and objects; bounds the stack.
    package static let maximumDepth = 32

    /// Valid while the parser is used; every access is checked against its count.
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    /// Parses the single value in `bytes`.
    ///
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    package static func parse(_ bytes: [UInt8]) throws(JSONSyntaxError) -> JSONValue {
        let result = bytes.withUnsafeBytes { bytes -> Result<JSONValue, JSONSyntaxError> in
            do throws(JSONSyntaxError) {
                return .success(try parse(bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Parses the single value in `bytes`, which are not kept.
    ///
    /// - Throws: ``JSONSyntaxError`` at the first invalid byte.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer
    ) throws(JSONSyntaxError) -> JSONValue {
        let bytes = bytes.bindMemory(to: UInt8.self)
        var parser = JSONParser(bytes)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            throw parser.failure("remove the byte order mark")
        }
        parser.skipWhitespace()
        let value = try parser.value(depth: 0)
        parser.skipWhitespace()
        if parser.position < bytes.count {
            throw parser.failure("nothing may follow the JSON value")
        }
        return value
    }

    private mutating func value(depth: Int) throws(JSONSyntaxError) -> JSONValue {
        guard let byte = current else { throw failure("the text ends where a value should be") }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(ForeignText(try string()))
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
            throw failure(unknownWord)
        default: throw failure("expected a value, found \(shown(byte))")
        }
    }

    /// The complaint about a word that is no value, such as `True`, `None` or text without quotes.
    private var unknownWord: String {
        let word = bytes[position...].prefix(20).prefix { byte in
            (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        }
        return "expected a value, found the word `\(String(decoding: word, as: UTF8.self))`"
    }

    private mutating func object(depth: Int) throws(JSONSyntaxError) -> [JSONMember] {
        try enter(depth: depth)
        var members: [JSONMember] = []
        var names = MemberNames()
        skipWhitespace()
        if take(UInt8(ascii: "}")) { return members }
        while true {
            skipWhitespace()
            let start = position
            guard current == UInt8(ascii: "\"") else {
                throw failure("expected a member name in double quotes, found \(shown(current))")
            }
            let name = ForeignText(try string())
            guard names.insert(name, in: members) else {
                throw failure("\"\(name.visible())\" occurs twice in one object", at: start)
            }
            skipWhitespace()
            guard take(UInt8(ascii: ":")) else {
                throw failure("expected `:` after a member name, found \(shown(current))")
            }
            skipWhitespace()
            members.append(JSONMember(name: name, value: try value(depth: depth + 1)))
            skipWhitespace()
            if take(UInt8(ascii: ",")) { continue }
            if take(UInt8(ascii: "}")) { return members }
            throw failure("expected `,` or `}`, found \(shown(current))")
        }
    }

    /// The names of one object; searched linearly while there are few.
    private struct MemberNames {
        private static let few = 16
        private var all: Set<ForeignText> = []

        /// False when `members` contain `name` already.
        mutating func insert(_ name: ForeignText, in members: [JSONMember]) -> Bool {
            guard members.count >= Self.few else { return !members.contains { $0.name == name } }
            if members.count == Self.few { all = Set(members.map(\.name)) }
            return all.insert(name).inserted
        }
    }

    private mutating func array(depth: Int) throws(JSONSyntaxError) -> [JSONValue] {
        try enter(depth: depth)
        var elements: [JSONValue] = []
        skipWhitespace()
        if take(UInt8(ascii: "]")) { return elements }
        while true {
            skipWhitespace()
            elements.append(try value(depth: depth + 1))
            skipWhitespace()
            if take(UInt8(ascii: ",")) { continue }
            if take(UInt8(ascii: "]")) { return elements }
            throw failure("expected `,` or `]`, found \(shown(current))")
        }
    }

    /// Skips the opening bracket.
    private mutating func enter(depth: Int) throws(JSONSyntaxError) {
        guard depth < Self.maximumDepth else {
            throw failure("more than \(Self.maximumDepth) levels of arrays and objects")
        }
        position += 1
    }

    private mutating func literal(
        _ word: StaticString, _ value: JSONValue
    ) throws(JSONSyntaxError) -> JSONValue {
        let expected = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[position...].starts(with: expected) else {
            throw failure(unknownWord)
        }
        position += expected.count
        return value
    }

    private mutating func number() throws(JSONSyntaxError) -> String {
        let start = position
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        return String(decoding: part(from: start), as: UTF8.self)
    }

    private mutating func digits() throws(JSONSyntaxError) {
        let start = position
        while let byte = current, isDigit(byte) { position += 1 }
        if position == start { throw failure("expected a digit, found \(shown(current))") }
    }

    // MARK: Strings

    private mutating func string() throws(JSONSyntaxError) -> String {
        position += 1
        var collected: [UInt8] = []
        var start = position
        while position < bytes.count, isPlain(bytes[position]) { position += 1 }
        if current == UInt8(ascii: "\"") {
            // Without escapes the text can be taken as a whole.
            guard let text = String(validating: part(from: start), as: UTF8.self) else {
                throw failure("the string that ends here is not UTF-8")
            }
            position += 1
            return text
        }
        while true {
            guard let byte = current else { throw failure("the text ends inside a string") }
            switch byte {
            case UInt8(ascii: "\""):
                collected += bytes[start..<position]
                guard let text = String(validating: collected, as: UTF8.self) else {
                    throw failure("the string that ends here is not UTF-8")
                }
                position += 1
                return text
            case UInt8(ascii: "\\"):
                collected += bytes[start..<position]
                collected += Array(String(try escape()).utf8)
                start = position
            case 0..<0x20:
                throw failure("\(shown(byte)) must be escaped inside a string")
            default: position += 1
            }
        }
    }

    /// True for bytes that need no escape in a string.
    private func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private mutating func escape() throws(JSONSyntaxError) -> Unicode.Scalar {
        position += 1
        guard let byte = current else { throw failure("the text ends inside a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try unicodeEscape()
        default:
            throw failure("\\\(shown(byte)) is no escape of JSON", at: position - 1)
        }
    }

    /// Parses `XXXX` or, for a surrogate pair, `XXXX\uXXXX`.
    private mutating func unicodeEscape() throws(JSONSyntaxError) -> Unicode.Scalar {
        let start = position
        let first = try hexadecimal()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
            throw failure("half of a surrogate pair stands alone", at: start)
        }
        let second = try hexadecimal()
        guard (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        else { throw failure("half of a surrogate pair stands alone", at: start) }
        return scalar
    }

    private mutating func hexadecimal() throws(JSONSyntaxError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue
            else { throw failure("\\u needs four hexadecimal digits") }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    // MARK: Bytes

    /// The bytes from `start` to the present position.
    private func part(from start: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[start..<position])
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipWhitespace() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            position += 1
        }
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private func shown(_ byte: UInt8?) -> String {
        guard let byte else { return "the end of the text" }
        guard (0x21...0x7E).contains(byte) else {
            return "byte 0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        return "`\(Unicode.Scalar(byte))`"
    }

    private func failure(_ reason: String, at offset: Int? = nil) -> JSONSyntaxError {
        let before = bytes[..<(offset ?? position)]
        let line = before.count { $0 == 0x0A } + 1
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        return JSONSyntaxError(
            line: line, column: before.count - lineStart + 1, reason: reason)
    }
}
