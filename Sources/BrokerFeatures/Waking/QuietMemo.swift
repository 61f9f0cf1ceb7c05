import TimeZones

/// Ends of quiet hours that were worked out lately, by time zone and hours: most phones of a broker share
/// a few, and a turn may ask for thousands.
struct QuietMemo {
    private struct Entry: BitwiseCopyable {
        var key: UInt64 = 0
        /// UNIX seconds at which it was worked out, and the end; ``none`` for no quiet hours.
        var at: Int64 = -1
        var end: Int64 = none
    }

    struct Known: BitwiseCopyable {
        /// `nil` when the hours do not last.
        let end: Int64?
    }

    private static var none: Int64 { .min }
    private static var places: Int { 256 }

    private var entries = [Entry](repeating: Entry(), count: places)

    private static func key(_ zone: UInt32, _ hours: QuietHours) -> (key: UInt64, place: Int) {
        let key = UInt64(zone) << 32 | UInt64(hours.from) << 16 | UInt64(hours.to)
        return (key, Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> 56))
    }

    /// The end of hours in the zone of an index at a time, both in UNIX seconds, which is `nil` when they
    /// do not last; `nil` when it has not been worked out.
    func known(_ zone: UInt32, _ hours: QuietHours, at time: Int64) -> Known? {
        let (key, place) = Self.key(zone, hours)
        let entry = entries[place]
        guard entry.key == key, entry.at == time else { return nil }
        return Known(end: entry.end == Self.none ? nil : entry.end)
    }

    mutating func note(_ zone: UInt32, _ hours: QuietHours, at time: Int64, end: Int64?) {
        let (key, place) = Self.key(zone, hours)
        entries[place] = Entry(key: key, at: time, end: end ?? Self.none)
    }

    /// Forgets all, because zones have changed.
    mutating func removeAll() { self = QuietMemo() }
}
