import Glibc
import Synchronization

/// The value of the `Date` header (RFC 9110, section 5.6.7), formatted at most once a second.
final class HTTPDate: Sendable {
    private let cached = Mutex((second: Int.min, text: ""))

    /// The current date, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    func now() -> String {
        let second = time(nil)
        return cached.withLock { cached in
            if cached.second != second { cached = (second, Self.text(unixSeconds: second)) }
            return cached.text
        }
    }

    static func text(unixSeconds: Int) -> String {
        var seconds: time_t = unixSeconds
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits)
        return "\(days[Int(parts.tm_wday)]), \(twoDigits(parts.tm_mday)) "
            + "\(months[Int(parts.tm_mon)]) \(1900 + parts.tm_year) "
            + clock.joined(separator: ":") + " GMT"
    }

    private static func twoDigits(_ number: Int32) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}

/// UNIX time in milliseconds.
func unixMilliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
}
