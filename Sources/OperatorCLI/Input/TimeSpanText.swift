/// A span of time as it is written on the command line: a whole number, then a unit.
enum TimeSpanText {
    /// The seconds of a text such as `90d`; `nil` when it is no number with one of these units.
    static func seconds(_ text: String, units: [Character: Int64]) -> Int64? {
        guard let last = text.last, let unit = units[last] else { return nil }
        let digits = text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Int64(digits)
        else { return nil }
        let (seconds, overflows) = count.multipliedReportingOverflow(by: unit)
        return overflows ? nil : seconds
    }
}
