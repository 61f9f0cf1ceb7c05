/// Turns untrusted text into text that cannot act on a terminal or forge a second line.
///
/// User names, client identifiers, topics and file contents come from others. Escaped are: control
/// characters (C0, DEL, C1, so every ANSI sequence loses its escape), format characters (all
/// bidirectional controls, zero-width characters, byte order mark), line and paragraph separators,
/// private-use and unassigned code points, and the backslash itself, so that the result is
/// unambiguous: `\n`, `\t`, `\\`, `\u{1B}`; a byte of invalid UTF-8 becomes `\xNN`.
package enum VisibleText {
    /// The text with everything invisible or active spelled out.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: needsEscape) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if needsEscape(scalar) {
                result += escape(of: scalar)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The same for text that its author has escaped already, such as the broker's explanations:
    /// backslashes stay single.
    package static func printable(_ text: String) -> String {
        text.split(separator: "\\", omittingEmptySubsequences: false)
            .map { escaped(String($0)) }
            .joined(separator: "\\")
    }

    /// The same for bytes that may be no valid UTF-8: then each byte above 0x7F becomes `\xNN`.
    package static func escaped(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return escaped(text) }
        return bytes.reduce(into: "") { result, byte in
            if byte < 0x80 {
                result += escaped(String(UnicodeScalar(byte)))
            } else {
                result += "\\x" + hexadecimal(UInt32(byte))
            }
        }
    }

    /// True for what changes how a terminal shows other text, or what nobody can see.
    package static func needsEscape(_ scalar: UnicodeScalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F || scalar == "\\" }
        return isHidden(scalar)
    }

    /// True for every scalar that shows nothing of its own: see the type's description.
    package static func isHidden(_ scalar: UnicodeScalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
            .unassigned:
            true
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .nonspacingMark, .spacingMark, .enclosingMark, .decimalNumber, .letterNumber,
            .otherNumber, .connectorPunctuation, .dashPunctuation, .openPunctuation,
            .closePunctuation, .initialPunctuation, .finalPunctuation, .otherPunctuation,
            .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol, .spaceSeparator:
            false
        @unknown default:
            true
        }
    }

    private static func escape(of scalar: UnicodeScalar) -> String {
        switch scalar {
        case "\\": "\\\\"
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: "\\u{" + hexadecimal(scalar.value) + "}"
        }
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return digits.utf8.count < 2 ? "0" + digits : digits
    }
}
