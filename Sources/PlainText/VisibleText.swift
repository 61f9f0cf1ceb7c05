/// Turns untrusted text into text that cannot act on a terminal or forge a second line.
///
/// User names, client identifiers, topics, paths and file contents come from others. Escaped are:
/// control characters (C0, DEL, C1, so every ANSI sequence loses its escape), format characters
/// (all bidirectional controls, zero-width characters, byte order mark), letters and selectors that
/// are shown as nothing, line and paragraph separators, private-use and unassigned code points, and the backslash itself, so that the result
/// is unambiguous: `\n`, `\r`, `\t`, `\\`, `\u{1B}`; a byte of invalid UTF-8 becomes `\xFF`.
package enum VisibleText {
    /// The text escaped. With a limit it is cut after that many Unicode scalars, and ends in `…`.
    package static func escaped(_ text: String, limit: Int = .max) -> String {
        precondition(limit > 0, "a limit of \(limit) shows nothing")
        guard text.utf8.count > limit || text.unicodeScalars.contains(where: needsEscape) else {
            return text
        }
        var result = ""
        for (position, scalar) in text.unicodeScalars.enumerated() {
            if position == limit { return result + "…" }
            result += escaped(scalar)
        }
        return result
    }

    /// Bytes escaped that should be UTF-8 and may not be.
    package static func escaped(_ bytes: some Collection<UInt8>) -> String {
        let bytes = Array(bytes)
        var result = ""
        var position = 0
        while let unit = UTF8Scanner.next(in: bytes.span, at: &position) {
            result += escaped(unit)
        }
        return result
    }

    /// One scalar or invalid byte, escaped if need be.
    package static func escaped(_ unit: UTF8Scanner.Unit) -> String {
        switch unit {
        case .scalar(let scalar): escaped(scalar)
        case .invalid(let byte): "\\x\(hexadecimal(UInt32(byte)))"
        }
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\\": "\\\\"
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: isHidden(scalar) ? "\\u{\(hexadecimal(scalar.value))}" : String(scalar)
        }
    }

    /// The text escaped in quotation marks; those within it get a backslash.
    package static func quoted(_ text: String) -> String {
        let parts = escaped(text).parts(separator: "\"")
        return "\"\(parts.joined(separator: "\\\""))\""
    }

    /// The same for text that its author has escaped already, such as the broker's explanations:
    /// backslashes stay single.
    package static func printable(_ text: String) -> String {
        text.parts(separator: "\\")
            .map { escaped(String($0)) }
            .joined(separator: "\\")
    }

    /// True for what is not shown as it is.
    package static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\\" || isHidden(scalar)
    }

    /// True for every scalar that shows nothing of its own, or changes how others are shown.
    package static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        // Letters that are shown as nothing, such as the Hangul filler U+3164, and selectors.
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
            .unassigned:
            true
        default: false
        }
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        String(value, radix: 16, uppercase: true)
    }
}

extension String {
    /// Untrusted text for a message: escaped, and cut after `limit` scalars.
    package func visible(limit: Int = 128) -> String { VisibleText.escaped(self, limit: limit) }
}
