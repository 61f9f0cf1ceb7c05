import Glibc

/// A second in universal time, written as `2025-01-31T08:00:00Z` (RFC 3339 with `T` and `Z`).
package struct UTCTime: Hashable, Comparable, Sendable {
    /// From the year 1970 to 9999, which four digits hold.
    package static let range: ClosedRange<Int64> = 0...253_402_300_799

    /// Since 1970, without leap seconds; within ``range``.
    package let unixSeconds: Int64

    /// The nearest time within ``range``.
    package init(clamping unixSeconds: Int64) {
        self.unixSeconds = min(max(unixSeconds, Self.range.lowerBound), Self.range.upperBound)
    }

    /// Parses the form of ``description``; `nil` for other text and impossible dates.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 else { return nil }
        func number(_ range: Range<Int>) -> Int32 {
            bytes[range].reduce(0) { $0 * 10 + Int32($1) - Int32(UInt8(ascii: "0")) }
        }
        var parts = tm()
        parts.tm_year = number(0..<4) - 1900
        parts.tm_mon = number(5..<7) - 1
        parts.tm_mday = number(8..<10)
        parts.tm_hour = number(11..<13)
        parts.tm_min = number(14..<16)
        parts.tm_sec = number(17..<19)
        self.init(clamping: Int64(timegm(&parts)))
        // timegm turns 31 February into 3 March, and letters into numbers.
        if description.utf8.elementsEqual(bytes) { return }
        return nil
    }

    /// The time of the wall clock.
    package static func now() -> UTCTime {
        UTCTime(clamping: Int64(time(nil)))
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.unixSeconds < right.unixSeconds
    }
}

extension UTCTime: CustomStringConvertible {
    package var description: String {
        let time = CivilTime(unixSeconds: unixSeconds)
        var text: [UInt8] = []
        time.appendDate(to: &text)
        text.append(UInt8(ascii: "T"))
        time.appendClock(to: &text)
        text.append(UInt8(ascii: "Z"))
        return String(decoding: text, as: UTF8.self)
    }
}
