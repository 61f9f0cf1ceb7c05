import FoundationEssentials
import PlainText

/// Prints JSON for scripts without letting it act on a terminal.
enum JSONOutput {
    /// The document as it came, on a line of its own. Control and invisible characters, which valid
    /// JSON can contain only inside strings, become `\uXXXX`: the document means the same.
    static func line(_ json: [UInt8]) -> String {
        var result = ""
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if scalar == "\n" || scalar == "\r" || scalar == "\t" || scalar == "\\"
                || !VisibleText.needsEscape(scalar)
            {
                result.unicodeScalars.append(scalar)
            } else {
                for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
                    let digits = String(unit, radix: 16)
                    result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            }
        }
        while result.last?.isNewline == true { result.removeLast() }
        return result + "\n"
    }

    /// A document made here, with its keys in order.
    static func line(_ value: some Encodable) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return line(Array(try encoder.encode(value)))
        } catch {
            preconditionFailure("a model of strings and integers cannot be encoded: \(error)")
        }
    }
}
