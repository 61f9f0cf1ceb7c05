import PlainText

/// Text for a terminal: what a parser says of an operator's file or a caller's request.
enum PrintedText {
    /// Throws when a part of the input acts on the terminal, or makes further lines than `lines`.
    static func check(_ text: String, lines: Int = 1) throws(CheckFailure) {
        let hidden = text.unicodeScalars.first { $0 != "\n" && VisibleText.isHidden($0) }
        try CheckFailure.unless(
            hidden == nil, "U+\(String(hidden?.value ?? 0, radix: 16)) is printed")
        let count = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
        try CheckFailure.unless(count == lines, "\(count) lines in place of \(lines): \(text)")
    }

    /// The number of a line that lies within an input, whose lines count from 1.
    static func check(line: Int, in input: [UInt8]) throws(CheckFailure) {
        let count = input.count { $0 == UInt8(ascii: "\n") } + 1
        try CheckFailure.unless(
            (1...count).contains(line), "line \(line) is named, and there are \(count)")
    }
}
