/// A second of universal time by the Gregorian calendar, without leap seconds.
package struct CivilTime: Equatable, Sendable {
    package let year: Int64
    /// From 1.
    package let month: Int64
    /// From 1.
    package let day: Int64
    package let hour: Int64
    package let minute: Int64
    package let second: Int64
    /// From Sunday, which is 0.
    package let weekday: Int64

    /// - Parameter unixSeconds: Seconds since 1970-01-01T00:00:00Z.
    package init(unixSeconds: Int64) {
        let (days, time) = unixSeconds.flooredDivision(by: 86_400)
        (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60)
        // The first of January 1970 was a Thursday.
        weekday = (days + 4).flooredDivision(by: 7).remainder

        // Years begin with March here, so that the leap day is last and the month follows from one
        // division: five months from any March have 153 days.
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        // Subtracts leap days: one every 4 years (1,460 days), except every 100, except every 400.
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    }

    /// Appends `2026-11-21`; years from 0 to 9999.
    package func appendDate(to text: inout [UInt8]) {
        Self.append(year, 4, to: &text)
        text.append(UInt8(ascii: "-"))
        Self.append(month, 2, to: &text)
        text.append(UInt8(ascii: "-"))
        Self.append(day, 2, to: &text)
    }

    /// Appends `03:04:05`.
    package func appendClock(to text: inout [UInt8]) {
        Self.append(hour, 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(minute, 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(second, 2, to: &text)
    }

    /// Appends the last `width` decimal digits.
    package static func append(_ value: Int64, _ width: Int, to text: inout [UInt8]) {
        var divisor: Int64 = 1
        for _ in 1..<width { divisor *= 10 }
        while divisor > 0 {
            text.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
            divisor /= 10
        }
    }
}

extension Int64 {
    /// Quotient and remainder with a remainder that is never negative.
    package func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
