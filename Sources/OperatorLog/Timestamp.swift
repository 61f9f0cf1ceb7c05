import Glibc

/// A time of the wall clock in milliseconds.
struct Timestamp: Sendable, Equatable {
    /// Since 1970-01-01T00:00:00Z, without leap seconds.
    let milliseconds: Int64

    static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// RFC 3339 in UTC, such as `2026-11-21T03:04:05.123Z`; years 0 to 9999.
    var text: [UInt8] {
        let (days, time) = milliseconds.flooredDivision(by: 86_400_000)
        let date = Self.date(days)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        Self.append(date.year, 4, to: &text)
        text.append(UInt8(ascii: "-"))
        Self.append(date.month, 2, to: &text)
        text.append(UInt8(ascii: "-"))
        Self.append(date.day, 2, to: &text)
        text.append(UInt8(ascii: "T"))
        Self.append(time / 3_600_000, 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(time / 60_000 % 60, 2, to: &text)
        text.append(UInt8(ascii: ":"))
        Self.append(time / 1_000 % 60, 2, to: &text)
        text.append(UInt8(ascii: "."))
        Self.append(time % 1_000, 3, to: &text)
        text.append(UInt8(ascii: "Z"))
        return text
    }

    /// The Gregorian date of a day counted from 1970-01-01.
    ///
    /// Years begin with March here, so that the leap day is last and the month follows from one
    /// division: five months from any March have 153 days.
    private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredDivision(by: 146_097)
        // Subtracts leap days: one every 4 years (1,460 days), except every 100, except every 400.
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
    }

    /// Appends the last `width` decimal digits.
    private static func append(_ value: Int64, _ width: Int, to text: inout [UInt8]) {
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
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
