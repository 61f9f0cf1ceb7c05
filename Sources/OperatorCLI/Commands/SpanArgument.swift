import ArgumentParser
import PlainText

/// A span of time on the command line: a whole number with s, m, h or d.
struct SpanArgument {
    let seconds: Int64

    /// Throws the parser's error, which lists the valid forms.
    static func parse(
        _ text: String, option: String, upToDays days: Int64
    ) throws -> SpanArgument {
        guard let seconds = TimeSpanText.seconds(text), seconds <= days * 86_400
        else {
            throw ValidationError(
                """
                \(option) "\(VisibleText.escaped(text))" is no time. Give a whole number with s \
                (seconds), m (minutes), h (hours) or d (days), up to \(days)d, such as 30m.
                """)
        }
        return SpanArgument(seconds: seconds)
    }
}
