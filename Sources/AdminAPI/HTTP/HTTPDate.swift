import Glibc
import PlainText
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
        let time = CivilTime(unixSeconds: Int64(unixSeconds))
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        var text = Array("\(days[Int(time.weekday)]), ".utf8)
        CivilTime.append(time.day, 2, to: &text)
        text += Array(" \(months[Int(time.month) - 1]) ".utf8)
        CivilTime.append(time.year, 4, to: &text)
        text.append(UInt8(ascii: " "))
        time.appendClock(to: &text)
        return String(decoding: text, as: UTF8.self) + " GMT"
    }
}

/// UNIX time in milliseconds.
func unixMilliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
}
