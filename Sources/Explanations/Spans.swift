/// The form of times and sizes in sentences and tables.
package enum Spans {
    /// A span in its two largest units: `45s`, `3m 20s`, `2h 5m`, `12d 3h`. Negative spans, which
    /// clocks that disagree produce, count as 0.
    package static func span(seconds: Int64) -> String {
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
    package static func age(of moment: Int64, now: Int64) -> String {
        let (difference, overflow) = now.subtractingReportingOverflow(moment)
        return span(seconds: overflow ? 0 : difference / 1_000)
    }

    /// Bytes in the largest binary unit that leaves at least 1, with one decimal below 10:
    /// `512 B`, `1.5 KiB`, `20 MiB`.
    package static func bytes(_ count: some BinaryInteger) -> String {
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
}
