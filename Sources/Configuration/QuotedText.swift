import PlainText

/// Foreign text for a message: escaped, and cut at 200 characters.
func shown(_ text: String) -> String { VisibleText.escaped(text, limit: 200) }

/// A value for a sentence: unchanged if it is one plain word, otherwise in quotation marks.
func quoted(_ text: String) -> String {
    let isPlainWord = text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
    let text = VisibleText.escaped(text, limit: 80)
    return isPlainWord && !text.isEmpty ? text : "\"\(text)\""
}
