import FoundationEssentials

/// The form of numbers and times in tables.
enum Wording {
    /// The text for a missing value.
    static let absent = "-"

    /// A span in its two largest units: `45s`, `3m 20s`, `2h 5m`, `12d 3h`. Negative spans, which
    /// clocks that disagree produce, count as 0.
    static func span(seconds: Int64) -> String {
        let seconds = max(0, seconds)
        let units: [(suffix: String, length: Int64)] = [
            ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1),
        ]
        guard let first = units.firstIndex(where: { seconds >= $0.length }) else { return "0s" }
        let large = units[first]
        var text = "\(seconds / large.length)\(large.suffix)"
        if first + 1 < units.count {
            let small = units[first + 1]
            let rest = seconds % large.length / small.length
            if rest > 0 { text += " \(rest)\(small.suffix)" }
        }
        return text
    }

    /// The time since a moment; both in milliseconds since 1970.
    static func age(of moment: Int64, now: Int64) -> String {
        let (difference, overflow) = now.subtractingReportingOverflow(moment)
        return span(seconds: overflow ? 0 : difference / 1_000)
    }

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

    /// Bytes in the largest binary unit that leaves at least 1, with one decimal below 10:
    /// `512 B`, `1.5 KiB`, `20 MiB`.
    static func bytes(_ count: some BinaryInteger) -> String {
        var value = Double(count)
        var unit = "B"
        for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
            guard value >= 1_024 else { break }
            value /= 1_024
            unit = larger
        }
        if unit == "B" { return "\(count) B" }
        let tenths = Int((value * 10).rounded(.down))
        return tenths < 100 ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(tenths / 10) \(unit)"
    }

    /// A short span with three digits at most: `850 us`, `1.2 ms`, `3.5 s`.
    static func microseconds(_ count: UInt64) -> String {
        switch count {
        case ..<1_000: "\(count) us"
        case ..<1_000_000: "\(count / 1_000).\(count % 1_000 / 100) ms"
        default: "\(count / 1_000_000).\(count % 1_000_000 / 100_000) s"
        }
    }

    /// Counts by name, sorted by name: `queue_full 3, slow_reader 1`; `none` without any.
    static func counts(_ counts: [String: UInt64]) -> String {
        let shown = counts.filter { $0.value > 0 }.sorted { $0.key < $1.key }
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
