import Glibc

/// A JSON document in the order in which it was written down.
indirect enum JSONValue {
    case null
    case bool(Bool)
    case integer(Int64)
    /// Finite; written with at most six significant decimal places.
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])

    /// Indented by two spaces a level.
    func text(indent: Int = 0) -> String {
        let inner = String(repeating: "  ", count: indent + 1)
        let outer = String(repeating: "  ", count: indent)
        switch self {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .integer(let value): return String(value)
        case .number(let value): return Self.decimal(value)
        case .string(let value): return Self.quoted(value)
        case .array(let values):
            guard !values.isEmpty else { return "[]" }
            let lines = values.map { inner + $0.text(indent: indent + 1) }
            return "[\n\(lines.joined(separator: ",\n"))\n\(outer)]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let lines = members.map {
                "\(inner)\(Self.quoted($0.0)): \($0.1.text(indent: indent + 1))"
            }
            return "{\n\(lines.joined(separator: ",\n"))\n\(outer)}"
        }
    }

    /// Replaces a file with this document.
    func write(to path: String) throws(BenchFailure) {
        guard let file = fopen(path, "w") else {
            throw BenchFailure(
                "--json \(Text.visible(path)) cannot be written: \(String(cString: strerror(errno)))"
            )
        }
        let written = fputs(text() + "\n", file)
        guard fclose(file) == 0, written >= 0 else {
            throw BenchFailure("writing \(Text.visible(path)): \(String(cString: strerror(errno)))")
        }
    }

    private static func decimal(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        let rounded = (value * 1e6).rounded() / 1e6
        return rounded == rounded.rounded() && abs(rounded) < 1e15
            ? "\(Int64(rounded))" : "\(rounded)"
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let hex = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
