import Logging

/// The format of log lines.
package enum LogFormat: Sendable, Equatable {
    /// For people: `2026-11-21T03:04:05.123Z INFO  Broker started mqtt.port=1883`.
    case text
    /// One JSON object a line. Counts, sizes, times and truth values (``LogKeys/isNumber(_:)``) are
    /// numbers and truth values there, all else strings.
    case json
}

extension LogFormat {
    /// Metadata values per line; further ones are counted in `log.omitted`.
    static let maximumEntries = 64
    /// Nesting of dictionaries and arrays; deeper values are left out.
    static let maximumDepth = 8
    /// The key of an explanation of a mistake, which may be long and is trusted text.
    package static let explanationKey = "problem"

    /// Formats one event as a line with a final line feed.
    func line(
        at time: Timestamp, level: Logger.Level, label: String, message: String,
        metadata: Logger.Metadata
    ) -> [UInt8] {
        var fields = LogFields()
        fields.add(metadata)
        var line = LogLine()
        switch self {
        case .text:
            line.append(utf8: time.text)
            line.append(" ")
            line.append(Self.name(level))
            line.append(" ")
            line.append(message, .text, limit: LogLine.maximumMessageLength)
            for field in fields.all {
                line.append(" ")
                // Keys of other packages' loggers may be anything.
                Self.appendText(field.key, to: &line)
                line.append("=")
                Self.appendText(field.value, to: &line, limit: Self.limit(of: field.key))
            }
        case .json:
            line.append("{\"time\":\"")
            line.append(utf8: time.text)
            line.append("\",\"level\":\"")
            line.append(level.rawValue, .json)
            line.append("\",\"logger\":\"")
            line.append(label, .json)
            line.append("\",\"message\":\"")
            line.append(message, .json, limit: LogLine.maximumMessageLength)
            line.append("\"")
            for field in fields.all {
                line.append(Self.jsonNames.contains(field.key) ? ",\"metadata." : ",\"")
                line.append(field.key, .json)
                line.append("\":")
                switch field.value {
                case .word(let word):
                    line.append(word, .json)
                    continue
                case .text(let text):
                    line.append("\"")
                    line.append(text, .json, limit: Self.limit(of: field.key))
                case .bytes(let bytes):
                    line.append("\"")
                    line.append(bytes.kept.span, totalBytes: bytes.totalBytes, .json)
                }
                line.append("\"")
            }
            line.append("}")
        }
        line.endLine()
        return line.bytes
    }

    /// The line, as JSON, of a mistake for which the broker ends before there is a log.
    package static func fatalLine(_ explanation: String) -> [UInt8] {
        LogFormat.json.line(
            at: .now(), level: .critical, label: "hermesd", message: fatalMessage,
            metadata: [explanationKey: .string(explanation)])
    }

    /// The message of the lines for which the broker ends.
    package static let fatalMessage = "The broker ends"

    private static let jsonNames: Set<String> = ["time", "level", "logger", "message"]

    /// Padded to five characters, so that most messages are aligned.
    private static func name(_ level: Logger.Level) -> StaticString {
        switch level {
        case .trace: "TRACE"
        case .debug: "DEBUG"
        case .info: "INFO "
        case .notice: "NOTICE"
        case .warning: "WARNING"
        case .error: "ERROR"
        case .critical: "CRITICAL"
        }
    }

    private static func limit(of key: String) -> Int {
        key == explanationKey ? LogLine.maximumMessageLength : LogLine.maximumValueLength
    }

    private static func appendText(
        _ value: LogFields.Value, to line: inout LogLine, limit: Int
    ) {
        switch value {
        case .text(let text), .word(let text): appendText(text, to: &line, limit: limit)
        case .bytes(let bytes):
            appendText(bytes.kept.span, totalBytes: bytes.totalBytes, to: &line)
        }
    }

    private static func appendText(
        _ text: String, to line: inout LogLine, limit: Int = LogLine.maximumValueLength
    ) {
        let utf8 = text.utf8
        appendText(utf8.span, totalBytes: utf8.count, to: &line, limit: limit)
    }

    /// A plain word unchanged, anything else in quotes.
    private static func appendText(
        _ bytes: Span<UInt8>, totalBytes: Int, to line: inout LogLine,
        limit: Int = LogLine.maximumValueLength
    ) {
        var isPlain = !bytes.isEmpty && totalBytes <= limit
        if isPlain {
            for index in bytes.indices where !isPlainByte(bytes[index]) { isPlain = false }
        }
        if isPlain {
            line.append(bytes, totalBytes: totalBytes, .text)
        } else {
            line.append("\"")
            line.append(bytes, totalBytes: totalBytes, .text, limit: limit)
            line.append("\"")
        }
    }

    /// Printable ASCII except separators and delimiters.
    private static func isPlainByte(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
            && byte != UInt8(ascii: "\\")
    }
}

/// The metadata of one line, flattened: `a: [b: 1, c: [x]]` becomes `a.b` and `a.c.0`.
struct LogFields {
    enum Value {
        case text(String)
        /// A number, true or false, which JSON writes without quotes.
        case word(String)
        case bytes(LoggedBytes)
    }

    private var kept: [(key: String, value: Value)] = []
    private var omittedCount = 0

    /// The values to write, in the order of keys.
    var all: [(key: String, value: Value)] {
        guard omittedCount > 0 else { return kept }
        return kept + [("log.omitted", .word("\(omittedCount)"))]
    }

    mutating func add(_ metadata: Logger.Metadata) {
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            add(key, value, depth: 1)
        }
    }

    private mutating func add(_ key: String, _ value: Logger.MetadataValue, depth: Int) {
        guard kept.count < LogFormat.maximumEntries, depth <= LogFormat.maximumDepth else {
            omittedCount += 1
            return
        }
        switch value {
        case .string(let text):
            let isWord = LogKeys.isNumber(key) && Self.isWord(text)
            kept.append((key, isWord ? .word(text) : .text(text)))
        case .stringConvertible(let bytes as LoggedBytes): kept.append((key, .bytes(bytes)))
        case .stringConvertible(let value) where value is any BinaryInteger || value is Bool:
            kept.append((key, .word(value.description)))
        case .stringConvertible(let value): kept.append((key, .text(value.description)))
        case .dictionary(let values):
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                add("\(key).\(name)", value, depth: depth + 1)
            }
        case .array(let values):
            for (index, value) in values.enumerated() {
                add("\(key).\(index)", value, depth: depth + 1)
            }
        }
    }

    /// True for what JSON reads as this number or truth value: at most 15 digits, so that no reader
    /// rounds it, without zeros in front.
    private static func isWord(_ text: String) -> Bool {
        if text.utf8.elementsEqual("true".utf8) || text.utf8.elementsEqual("false".utf8) {
            return true
        }
        let digits = text.utf8
        return (1...15).contains(digits.count)
            && (digits.count == 1 || digits.first != UInt8(ascii: "0"))
            && digits.allSatisfy { (0x30...0x39).contains($0) }
    }
}
