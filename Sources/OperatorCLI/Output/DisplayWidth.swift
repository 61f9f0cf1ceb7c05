/// The number of terminal columns that a text takes.
///
/// By scalar, from the East Asian Width property (UAX #11) in ranges wide enough for every block
/// in use: marks take none, East Asian and emoji take two, the rest one. Text is escaped before it
/// is measured, so control and format characters do not occur.
enum DisplayWidth {
    static func of(_ text: String) -> Int {
        text.unicodeScalars.reduce(0) { $0 + of($1) }
    }

    static func of(_ scalar: UnicodeScalar) -> Int {
        if scalar.isASCII { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: break
        }
        if scalar.properties.isEmojiPresentation { return 2 }
        return wideRanges.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// The longest beginning of `text` that fits into `columns`, ending in `…` when it is cut. A
    /// character and its marks stay together.
    static func cut(_ text: String, to columns: Int) -> String {
        precondition(columns >= 1, "cannot cut text to \(columns) columns")
        if of(text) <= columns { return text }
        var result = ""
        var width = 1
        for character in text {
            width += of(String(character))
            if width > columns { break }
            result.append(character)
        }
        return result + "…"
    }

    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115F,  // Hangul Jamo, leading consonants
        0x2E80...0x303E,  // CJK radicals and punctuation
        0x3041...0x33FF,  // Kana, Bopomofo, CJK compatibility
        0x3400...0x4DBF,  // CJK extension A
        0x4E00...0x9FFF,  // CJK unified ideographs
        0xA000...0xA4CF,  // Yi
        0xA960...0xA97F,  // Hangul Jamo extended A
        0xAC00...0xD7A3,  // Hangul syllables
        0xF900...0xFAFF,  // CJK compatibility ideographs
        0xFE10...0xFE19,  // vertical forms
        0xFE30...0xFE6F,  // CJK compatibility and small forms
        0xFF01...0xFF60,  // fullwidth forms
        0xFFE0...0xFFE6,  // fullwidth signs
        0x17000...0x18DFF,  // Tangut
        0x1B000...0x1B2FF,  // Kana supplement
        0x20000...0x3FFFD,  // CJK extensions B and later
    ]
}
