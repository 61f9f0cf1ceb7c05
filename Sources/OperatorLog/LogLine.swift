import PlainText

/// One log line being written: valid UTF-8 without control characters, whatever is appended, and a
/// final line feed.
struct LogLine {
    /// Characters of one value; longer values are cut with a mark.
    static let maximumValueLength = 256
    /// The same for messages and for explanations of mistakes, which may contain a path and end
    /// with advice.
    static let maximumMessageLength = 1_024

    /// The form of escapes for unsafe characters.
    enum Escaping {
        /// For people: `\n`, `\u{1B}`, `\xFF`.
        case text
        /// For parsers: the escapes of JSON strings (RFC 8259), U+FFFD for invalid bytes.
        case json
    }

    private(set) var bytes: [UInt8] = []

    init() {
        bytes.reserveCapacity(256)
    }

    /// Appends trusted text unchanged.
    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// Appends UTF-8 that needs no escape.
    mutating func append(utf8: some Sequence<UInt8>) {
        bytes.append(contentsOf: utf8)
    }

    /// Appends any text, escaped and cut.
    mutating func append(_ text: String, _ escaping: Escaping, limit: Int = maximumValueLength) {
        let utf8 = text.utf8
        append(utf8.span, totalBytes: utf8.count, escaping, limit: limit)
    }

    /// Appends any bytes, escaped and cut after `limit` characters with a mark that counts the
    /// rest. `totalBytes` includes bytes that the caller left out.
    mutating func append(
        _ source: Span<UInt8>, totalBytes: Int, _ escaping: Escaping,
        limit: Int = maximumValueLength
    ) {
        var position = 0
        var left = limit
        while left > 0 {
            // Most text needs no escape.
            let run = Self.plainBytes(of: source, from: position, most: left)
            if run > 0 {
                source.extracting(position..<position + run).withUnsafeBufferPointer {
                    bytes.append(contentsOf: $0)
                }
                position += run
                left -= run
            } else {
                guard let unit = UTF8Scanner.next(in: source, at: &position) else { break }
                let start = bytes.count
                append(unit, escaping)
                let length = bytes.count - start
                // A hidden letter becomes ten bytes: it counts all of them, so that no value has more
                // than four times its characters in bytes.
                left -= length > 4 ? length : 1
            }
        }
        let hidden = totalBytes - position
        guard hidden > 0 else { return }
        append("…(+")
        append(utf8: "\(hidden)".utf8)
        append(" bytes)")
    }

    /// The number of printable ASCII characters that no escaping changes.
    private static func plainBytes(of source: Span<UInt8>, from start: Int, most: Int) -> Int {
        var end = start
        while end < source.count, end - start < most, (0x20...0x7E).contains(source[end]),
            source[end] != UInt8(ascii: "\""), source[end] != UInt8(ascii: "\\")
        {
            end += 1
        }
        return end - start
    }

    mutating func endLine() {
        bytes.append(UInt8(ascii: "\n"))
    }

    private mutating func append(_ unit: UTF8Scanner.Unit, _ escaping: Escaping) {
        switch (unit, escaping) {
        case (.scalar("\""), _): append("\\\"")
        case (.scalar("\n"), _), (.scalar("\r"), _), (.scalar("\t"), _), (_, .text):
            append(utf8: VisibleText.escaped(unit).utf8)
        case (.scalar(let scalar), .json) where VisibleText.isHidden(scalar):
            for unit in UTF16.encode(scalar).map(Array.init) ?? [] {
                let digits = String(unit, radix: 16, uppercase: true)
                append("\\u")
                append(utf8: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
                append(utf8: digits.utf8)
            }
        case (.scalar, .json): append(utf8: VisibleText.escaped(unit).utf8)
        case (.invalid, .json): append("\\uFFFD")
        }
    }
}
