extension String {
    /// The text with everything written out that a terminal, a log or a reader could mistake for
    /// something else: control characters, line breaks, invisible and direction-changing ones.
    ///
    /// For client identifiers, topic names, header values and all else that a peer chose. A
    /// backslash is doubled, so that what is written out cannot be confused with plain text.
    ///
    /// After `limit` Unicode scalars the text is cut, and ends in `…`.
    package func visible(limit: Int = 128) -> String {
        precondition(limit > 0, "a limit of \(limit) shows nothing")
        var shown = ""
        for (position, scalar) in unicodeScalars.enumerated() {
            if position == limit { return shown + "…" }
            switch scalar {
            case "\n": shown += "\\n"
            case "\r": shown += "\\r"
            case "\t": shown += "\\t"
            case "\\": shown += "\\\\"
            case _ where scalar.isUnsafeToShow:
                shown += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

extension Unicode.Scalar {
    /// True for what has no shape of its own or changes the shape of its neighbours.
    fileprivate var isUnsafeToShow: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
            .unassigned:
            true
        default: false
        }
    }
}
