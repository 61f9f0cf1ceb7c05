/// A time of each day at which phones stay silent, by the clocks of the user's time zone.
public struct QuietHours: Sendable, Equatable, BitwiseCopyable {
    /// Minutes of the day, 0 to 1,439. What begins after its end lasts over midnight.
    public let from: UInt16
    public let to: UInt16

    /// Looks at the clock that are made for an end: each change of the clocks takes one.
    private static let mostLooks = 16

    /// `nil` for hours that begin when they end.
    public init?(from: UInt16, to: UInt16) {
        guard from < 1_440, to < 1_440, from != to else { return nil }
        self.from = from
        self.to = to
    }

    /// Reads such as `22:00-07:00`.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let from = Self.minute(parts[0].utf8),
            let to = Self.minute(parts[1].utf8)
        else { return nil }
        self.init(from: from, to: to)
    }

    private static func minute(_ text: some Collection<UInt8>) -> UInt16? {
        let bytes = Array(text)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":") else { return nil }
        let digits = [bytes[0], bytes[1], bytes[3], bytes[4]]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let numbers = digits.map { UInt16($0 - 0x30) }
        let (hour, minute) = (10 * numbers[0] + numbers[1], 10 * numbers[2] + numbers[3])
        return hour < 24 && minute < 60 ? 60 * hour + minute : nil
    }

    public var text: String {
        func text(_ minute: UInt16) -> String {
            func two(_ number: UInt16) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(two(minute / 60)):\(two(minute % 60))"
        }
        return "\(text(from))-\(text(to))"
    }

    private func contains(_ minute: Int64) -> Bool {
        from < to
            ? Int64(from) <= minute && minute < Int64(to)
            : minute >= Int64(from) || minute < Int64(to)
    }

    /// The end of the quiet hours that last at a time, both in UNIX seconds; `nil` when none last.
    ///
    /// What clocks show decides, also on days on which they are set: an end that is left out comes when
    /// they are set, and hours that come twice are quiet twice.
    public func end(at time: Int64, in zone: ZoneRules) -> Int64? {
        var (now, isQuiet) = (time, false)
        for _ in 0..<Self.mostLooks {
            let ofDay = ((now + zone.offset(at: now)) % 86_400 + 86_400) % 86_400
            guard contains(ofDay / 60) else { return isQuiet ? now : nil }
            isQuiet = true
            let left = 60 * Int64(to) - ofDay
            let end = now + (left > 0 ? left : left + 86_400)
            now = min(end, zone.nextChange(after: now) ?? end)
        }
        return now
    }
}
