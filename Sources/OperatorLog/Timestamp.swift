import Glibc
import PlainText

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
        let (seconds, rest) = milliseconds.flooredDivision(by: 1_000)
        let time = CivilTime(unixSeconds: seconds)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        time.appendDate(to: &text)
        text.append(UInt8(ascii: "T"))
        time.appendClock(to: &text)
        text.append(UInt8(ascii: "."))
        CivilTime.append(rest, 3, to: &text)
        text.append(UInt8(ascii: "Z"))
        return text
    }
}
