import BrokerAPI
import Credentials
import PlainText

/// The time at which a caller wants a message to be published.
enum DeliveryTime {
    /// A time so little in the past is taken for now, since clocks differ.
    static let pastMs: Int64 = 60_000
    static let mostSeconds: Int64 = 366 * 86_400

    /// UNIX time in milliseconds of a date and time with an offset (RFC 3339), such as
    /// `2026-11-23T09:00:00+08:00`; `nil` for other text.
    static func parse(_ text: String) -> Int64? {
        guard text.utf8.count >= 20, text.utf8.count <= 40,
            let time = UTCTime(String(decoding: text.utf8.prefix(19), as: UTF8.self) + "Z")
        else { return nil }
        var rest = Array(text.utf8.dropFirst(19))
        var milliseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { isDigit($0) }
            guard !digits.isEmpty else { return nil }
            var unit: Int64 = 100
            for digit in digits {
                milliseconds += value(digit) * unit
                unit /= 10
            }
            rest.removeFirst(1 + digits.count)
        }
        guard let offsetMs = offset(rest) else { return nil }
        return time.unixSeconds * 1_000 + milliseconds - offsetMs
    }

    /// Milliseconds of `Z` or `+hh:mm`.
    private static func offset(_ bytes: [UInt8]) -> Int64? {
        if bytes == [UInt8(ascii: "Z")] { return 0 }
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"),
            bytes[0] == UInt8(ascii: "+") || bytes[0] == UInt8(ascii: "-"),
            [1, 2, 4, 5].allSatisfy({ isDigit(bytes[$0]) })
        else { return nil }
        let hours = value(bytes[1]) * 10 + value(bytes[2])
        let minutes = value(bytes[4]) * 10 + value(bytes[5])
        guard hours < 24, minutes < 60 else { return nil }
        return (bytes[0] == UInt8(ascii: "+") ? 1 : -1) * (hours * 60 + minutes) * 60_000
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func value(_ digit: UInt8) -> Int64 { Int64(digit) - 0x30 }
}

extension JSONFields {
    /// `deliver_at` or `deliver_in_s`; `nil` without both.
    ///
    /// - Throws: ``Problem`` for text that is no time, and for both at once.
    func delivery(now: Int64) throws(Problem) -> AskedDelivery? {
        let seconds = try integer("deliver_in_s", in: 0...DeliveryTime.mostSeconds)
        guard let text = try string("deliver_at") else {
            return seconds.map {
                AskedDelivery(atMs: now + $0 * 1_000, meaning: "in \($0) s", obstacle: nil)
            }
        }
        guard seconds == nil else {
            throw wrong("deliver_at", "and deliver_in_s are both given", fix: "Give one of them.")
        }
        guard let time = DeliveryTime.parse(text) else {
            throw wrong(
                "deliver_at",
                "is \"\(text.visible())\"; it must be a date and time with an offset (RFC 3339)",
                fix: "Write it like 2026-11-23T09:00:00+08:00 or 2026-11-23T01:00:00Z.")
        }
        return AskedDelivery(
            atMs: time, meaning: "at \(time)", obstacle: obstacle(to: time, text, now))
    }

    /// Why nothing new can be delivered at a time.
    private func obstacle(to time: Int64, _ text: String, _ now: Int64) -> Problem? {
        if time < now - DeliveryTime.pastMs {
            return wrong(
                "deliver_at",
                "is \"\(text.visible())\", which is more than 60 seconds ago",
                fix: "Give a later time, or leave it out to publish at once.")
        }
        if time > now + DeliveryTime.mostSeconds * 1_000 {
            return wrong(
                "deliver_at", "is \"\(text.visible())\", which is more than 366 days ahead",
                fix: "Give an earlier time.")
        }
        return nil
    }
}

/// The time at which a caller wants a message to be delivered.
struct AskedDelivery {
    /// UNIX time in milliseconds.
    var atMs: Int64
    /// What was asked for, in one form for all that mean the same.
    var meaning: String
    /// Why nothing new can be delivered then. A repeat is answered all the same, for its message was
    /// accepted in time.
    var obstacle: Problem?
}
