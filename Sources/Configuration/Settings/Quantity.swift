/// Numbers with and without units, parsed and formatted.
enum Quantity {
    /// The units that a number may have, as multiples of the smallest.
    struct Units: Sendable {
        /// From the largest unit to the smallest.
        let factors: [(name: String, factor: Int)]
        /// True when a number without a unit counts the smallest unit.
        let allowsBareNumber: Bool
        /// The unit to suggest when one is missing.
        let usual: String
        /// The measured quantity: "time", "size".
        let noun: String

        private var list: String {
            let names = factors.reversed().map(\.name)
            return names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
        }

        /// Parses a text such as `330KiB` into the smallest unit.
        ///
        /// - Throws: `RefusedValue` for text that is no number, a wrong or missing unit, or a value
        ///   outside `range`.
        func read(
            _ text: String, in range: ClosedRange<Int>, bounds: String
        ) throws(RefusedValue) -> Int {
            let digits = text.prefix { ("0"..."9").contains($0) }
            let unit = text.dropFirst(digits.count)
            guard !digits.isEmpty else {
                throw RefusedValue(
                    complaint: "\(quoted(text)) is not a \(noun)",
                    cure: "Give a whole number with its unit, such as 10\(usual).")
            }
            let factor: Int
            if unit.isEmpty {
                guard allowsBareNumber else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) has no unit",
                        cure: "Write \(digits)\(usual), or another of \(list).")
                }
                factor = 1
            } else if let known = factors.first(where: { $0.name == unit }) {
                factor = known.factor
            } else if let sum = sum(of: text) {
                let joined = write(sum)
                throw RefusedValue(
                    complaint: "\(quoted(text)) joins several units",
                    cure: "Give one: \(joined).")
            } else {
                throw RefusedValue(
                    complaint: "\(quoted(text)) does not end in a known unit",
                    cure: "Use a whole number with \(list), such as \(digits)\(similar(to: unit)).")
            }
            // A number beyond Int becomes Int.max, which is out of every range too.
            let (product, overflows) = (Int(digits) ?? .max).multipliedReportingOverflow(by: factor)
            let value = overflows ? Int.max : product
            guard range.contains(value) else {
                throw RefusedValue(
                    complaint:
                        "\(quoted(text)) is too \(value < range.lowerBound ? "small" : "large")",
                    cure: "Give \(bounds).")
            }
            return value
        }

        /// The unit that somebody means who writes `mb`, `Mi` or `hours`: the one that begins with the
        /// same letter; the usual one for other text.
        private func similar(to unit: Substring) -> String {
            let first = unit.lowercased().prefix(1)
            let isMilli = noun == "time" && unit.lowercased().hasPrefix("ms")
            let match = factors.first { name, _ in
                name.lowercased().hasPrefix(first) && (name == "ms") == isMilli
            }
            return match?.name ?? usual
        }

        /// The value of a text such as `1h30m`; `nil` for other text.
        private func sum(of text: String) -> Int? {
            var rest = text[...]
            var sum = 0
            while !rest.isEmpty {
                let digits = rest.prefix { ("0"..."9").contains($0) }
                rest = rest.dropFirst(digits.count)
                let unit = rest.prefix { !("0"..."9").contains($0) }
                rest = rest.dropFirst(unit.count)
                guard let number = Int(digits), number < 1 << 32,
                    let factor = factors.first(where: { $0.name == unit })?.factor
                else { return nil }
                sum = sum.addingReportingOverflow(number * factor).partialValue
            }
            return sum
        }

        /// Formats the value in the largest unit that divides it.
        func write(_ value: Int) -> String {
            for (name, factor) in factors where value != 0 && value % factor == 0 {
                return "\(value / factor)\(name)"
            }
            return allowsBareNumber ? "\(value)" : "\(value)\(usual)"
        }
    }

    static let sizeUnits = Units(
        factors: [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)],
        allowsBareNumber: true, usual: "KiB", noun: "size")

    static let durationUnits = Units(
        factors: [
            ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
        ],
        allowsBareNumber: false, usual: "s", noun: "time")

    /// Formats 1048576 as `1MiB`.
    static func size(_ bytes: Int) -> String { sizeUnits.write(bytes) }

    /// Formats ten seconds as `10s`; drops parts of a millisecond.
    static func duration(_ duration: Duration) -> String {
        durationUnits.write(milliseconds(duration))
    }

    static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    /// Parses decimal digits; `noun` ("a port") names the value in an error message.
    ///
    /// - Throws: `RefusedValue` for anything but digits, and for a number outside `range`.
    static func wholeNumber(
        _ text: String, in range: ClosedRange<Int>, noun: String?, expectation: String
    ) throws(RefusedValue) -> Int {
        let magnitude = text.hasPrefix("-") ? text.dropFirst() : text[...]
        let isNumber = !magnitude.isEmpty && magnitude.allSatisfy { ("0"..."9").contains($0) }
        if isNumber, let value = Int(text), range.contains(value) { return value }
        let complaint: String
        if let noun {
            complaint = "\(quoted(text)) is not \(noun)"
        } else if !isNumber {
            complaint = "\(quoted(text)) is not a whole number"
        } else {
            let isTooSmall = Int(text).map { $0 < range.lowerBound } ?? text.hasPrefix("-")
            complaint = "\(quoted(text)) is too \(isTooSmall ? "small" : "large")"
        }
        throw RefusedValue(complaint: complaint, cure: "Give \(expectation).")
    }
}
