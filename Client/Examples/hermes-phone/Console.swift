import HermesKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Writes whole lines at once, so that lines of two tasks never mix.
enum Console {
    static func message(_ line: String) { write(line, to: 1) }

    static func note(_ line: String) { write(line, to: 2) }

    private static func write(_ line: String, to descriptor: Int32) {
        var rest = Array((line + "\n").utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                #if canImport(Glibc)
                    Glibc.write(descriptor, $0.baseAddress, $0.count)
                #elseif canImport(Musl)
                    Musl.write(descriptor, $0.baseAddress, $0.count)
                #else
                    Darwin.write(descriptor, $0.baseAddress, $0.count)
                #endif
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

extension String {
    /// The text with every character escaped that could deceive a terminal.
    var visible: String {
        unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
                .paragraphSeparator:
                "\\u{\(String(scalar.value, radix: 16))}"
            default: String(scalar)
            }
        }.joined()
    }

    /// The text as a JSON string.
    var json: String {
        let escaped = unicodeScalars.map { scalar in
            switch scalar {
            case "\"": "\\\""
            case "\\": "\\\\"
            case _
            where scalar.value < 0x20 || 0x7F..<0xA0 ~= scalar.value
                || scalar.properties.generalCategory == .format:
                scalar.utf16.map { unit in
                    let digits = String(unit, radix: 16)
                    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }.joined()
            default: String(scalar)
            }
        }
        return "\"" + escaped.joined() + "\""
    }
}
