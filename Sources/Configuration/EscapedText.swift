/// What an operator or an attacker wrote, made harmless for one line on a terminal.
///
/// Controls, line breaks, ANSI escapes and the invisible formatting characters (among them those
/// that reverse the reading direction) appear as `\u{1B}`. Longer text is cut after
/// `limit` characters and marked with `…`.
func escaped(_ text: String, limit: Int = 200) -> String {
    var result = ""
    for (position, scalar) in text.unicodeScalars.enumerated() {
        if position == limit { return result + "…" }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
            result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        default:
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// A value inside a sentence: as it is when it is one plain word, in quotes otherwise.
func quoted(_ text: String) -> String {
    let isPlainWord = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
    return isPlainWord && !text.isEmpty
        ? escaped(text, limit: 80) : "\"\(escaped(text, limit: 80))\""
}
