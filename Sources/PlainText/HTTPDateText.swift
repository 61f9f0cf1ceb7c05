import Glibc

/// Reads a date of HTTP (RFC 9110, section 5.6.7) in each of its three forms, of which the two older
/// ones are still to be read: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`.
package enum HTTPDateText {
    private static let months: [[UInt8]] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ].map { Array($0.utf8) }

    /// UNIX seconds; `nil` for other text and impossible dates. The day of the week is not compared.
    /// `now` is in UNIX seconds too and gives a year of two digits its century: a date that seems to
    /// be more than 50 years ahead is a past one.
    package static func parse(_ text: String, now: Int64) -> Int64? {
        let words = text.utf8.split(whereSeparator: { " ,-".utf8.contains($0) }).map { Array($0) }
        let day, month, year, clock: [UInt8]
        switch words.count {
        case 6 where words[5] == Array("GMT".utf8):
            (day, month, year, clock) = (words[1], words[2], words[3], words[4])
        case 5: (day, month, year, clock) = (words[2], words[1], words[4], words[3])
        default: return nil
        }
        guard let month = months.firstIndex(of: month), let day = number(day, digits: 1...2),
            let time = seconds(of: clock),
            let year = fullYear(year, now: now)
        else { return nil }
        var text: [UInt8] = []
        CivilTime.append(year, 4, to: &text)
        text.append(UInt8(ascii: "-"))
        CivilTime.append(Int64(month) + 1, 2, to: &text)
        text.append(UInt8(ascii: "-"))
        CivilTime.append(day, 2, to: &text)
        let midnight = UTCTime(String(decoding: text, as: UTF8.self) + "T00:00:00Z")
        return midnight.map { $0.unixSeconds + time }
    }

    private static func fullYear(_ digits: [UInt8], now: Int64) -> Int64? {
        guard let year = number(digits, digits: 2...4), digits.count != 3 else { return nil }
        guard digits.count == 2 else { return year }
        let present = CivilTime(unixSeconds: now).year
        let guess = present - present % 100 + year
        return guess > present + 50 ? guess - 100 : guess
    }

    /// Seconds of `08:49:37`; second 60 is a leap second.
    private static func seconds(of clock: [UInt8]) -> Int64? {
        let parts = clock.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            .compactMap { number(Array($0), digits: 2...2) }
        guard parts.count == 3, parts[0] < 24, parts[1] < 60, parts[2] <= 60 else { return nil }
        return parts[0] * 3_600 + parts[1] * 60 + parts[2]
    }

    private static func number(_ bytes: [UInt8], digits: ClosedRange<Int>) -> Int64? {
        guard digits.contains(bytes.count), bytes.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return bytes.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
}
