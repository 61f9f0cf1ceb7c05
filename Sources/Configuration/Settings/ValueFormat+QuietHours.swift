import BrokerAPI
import TimeZones

extension ValueFormat where Value == QuietHours {
    private static var example: String { "22:00-07:00" }

    /// A time of each day.
    static var quietHours: Self {
        Self(
            expectation: "hours such as \(example)",
            read: { (text: String) throws(RefusedValue) -> QuietHours in
                guard let hours = QuietHours(text) else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) are no hours of a day",
                        cure: "Give two times from 00:00 to 23:59, such as \(example).")
                }
                return hours
            },
            write: \.text)
    }
}

extension ValueFormat where Value == String {
    /// The name of a time zone. Whether this machine has it, is seen when its files are read.
    static var timeZone: Self {
        Self(
            expectation: "the name of a time zone, such as Europe/Berlin",
            read: { (text: String) throws(RefusedValue) -> String in
                guard ZoneTable.isName(text.utf8) else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is not the name of a time zone",
                        cure: "Give one of /usr/share/zoneinfo, such as Europe/Berlin.")
                }
                return text
            },
            write: { $0 })
    }
}

extension ValueFormat where Value == WakeCap {
    private static var times: ClosedRange<Duration> { .seconds(60)...(.seconds(7 * 86_400)) }
    private static var counts: ClosedRange<UInt16> { 1...1_000 }

    /// A number and a time.
    static var wakeCap: Self {
        let time = ValueFormat<Duration>.duration(times)
        return Self(
            expectation: "a number from 1 to 1000 and a time from 1m to 7d, such as `20 per 1d`",
            read: { (text: String) throws(RefusedValue) -> WakeCap in
                let words = text.split(separator: " ")
                guard words.count == 3, String(words[1]) == "per", let count = UInt16(words[0]),
                    counts.contains(count)
                else {
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is no number per time",
                        cure: "Write such as `20 per 1d`; the number is 1 to 1000.")
                }
                let length = try time.read(String(words[2]))
                return WakeCap(
                    count: count, milliseconds: Int64(Quantity.milliseconds(length)))
            },
            write: { "\($0.count) per \(time.write(.milliseconds($0.milliseconds)))" })
    }
}
