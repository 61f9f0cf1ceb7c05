import Explanations
import FoundationEssentials
import PlainText

/// The form of numbers and times in tables.
enum Wording {
    /// The text for a missing value.
    static let absent = "-"

    /// A span in its two largest units, as in explanations.
    static func span(seconds: Int64) -> String { Spans.span(seconds: seconds) }

    /// The time since a moment; both in milliseconds since 1970.
    static func age(of moment: Int64, now: Int64) -> String { Spans.age(of: moment, now: now) }

    /// A moment as seen from now, both in milliseconds since 1970: `in 3m 20s`, `5s ago`.
    static func relative(_ moment: Int64, now: Int64) -> String {
        let (difference, overflow) = moment.subtractingReportingOverflow(now)
        let seconds = overflow ? 0 : difference / 1_000
        return seconds > 0 ? "in \(span(seconds: seconds))" : "\(span(seconds: -seconds)) ago"
    }

    /// A moment in UTC and the time since then: `2025-01-31T08:00:00Z (3m 20s ago)`.
    static func moment(_ milliseconds: Int64, now: Int64) -> String {
        let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
        return "\(date.formatted(.iso8601)) (\(age(of: milliseconds, now: now)) ago)"
    }

    /// Bytes in the largest binary unit that leaves at least 1, as in explanations.
    static func bytes(_ count: some BinaryInteger) -> String { Spans.bytes(count) }

    /// A short span with three digits at most: `850 us`, `1.2 ms`, `3.5 s`.
    static func microseconds(_ count: UInt64) -> String {
        switch count {
        case ..<1_000: "\(count) us"
        case ..<1_000_000: "\(count / 1_000).\(count % 1_000 / 100) ms"
        default: "\(count / 1_000_000).\(count % 1_000_000 / 100_000) s"
        }
    }

    /// The state of a device's wake, by its name in the HTTP API. `sent` is not said: a reader would
    /// believe that the push service has it.
    static func wake(_ state: String) -> String {
        state.hasBytes(of: "sent") ? "with sender" : state.replacing("_", with: " ")
    }

    /// Counts by name, sorted by name: `queue_full 3, slow_reader 1`; `none` without any.
    static func counts(_ counts: [String: UInt64]) -> String {
        let shown = counts.filter { $0.value > 0 }
            .sorted { ForeignText($0.key) < ForeignText($1.key) }
        if shown.isEmpty { return "none" }
        return shown.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }

    /// A share from 0 to 1 in percent, rounded down so that only a whole one is 100 %.
    static func share(_ share: Double?) -> String {
        guard let share else { return absent }
        let hundredths = Int((share * 10_000).rounded(.down))
        if hundredths == 10_000 { return "100 %" }
        let digits = hundredths % 100
        return "\(hundredths / 100).\(digits < 10 ? "0" : "")\(digits) %"
    }

    static func yesNo(_ value: Bool) -> String { value ? "yes" : "no" }
}
