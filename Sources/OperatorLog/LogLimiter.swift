/// Limits the rate of log lines, so that a flood of events becomes a few lines.
///
/// Events with one key share a rate: the first is logged at once, later ones at most once per
/// interval, and each line has the number of events suppressed before it. Only a hash of each key
/// is kept, so peers cannot fill memory. Beyond `maximumKeys`, a new key displaces the one unused
/// for longest; all such new keys together get one line per interval, so that invented keys gain
/// nothing.
///
/// Time is an argument: monotonic milliseconds from any origin. Time that runs backwards counts as
/// standing still.
package struct LogLimiter: Sendable {
    /// The events suppressed before a line.
    package struct HeldBack: Equatable, Sendable {
        /// Events with the line's key.
        package var ofKey: Int
        /// Events of the line's group, with any key.
        package var ofGroup: Int

        package init(ofKey: Int, ofGroup: Int) {
            self.ofKey = ofKey
            self.ofGroup = ofGroup
        }
    }

    private struct Record {
        var hash: Int
        var lastUse: UInt64
        var lastLine: UInt64?
        var heldBack = 0
    }

    private let maximumKeys: Int
    private var records: [Record] = []
    /// Indices in `records`, by hash.
    private var places: [Int: Int] = [:]
    private var uses: UInt64 = 0
    /// Time of the last line of a key that displaced another.
    private var lastNewcomer: UInt64?

    /// Keeps at most `maximumKeys` keys and groups, 2 or more.
    package init(maximumKeys: Int = 256) {
        precondition(maximumKeys >= 2, "a limiter for \(maximumKeys) keys")
        self.maximumKeys = maximumKeys
    }

    /// Decides about an event with this key, or about `count` such events at once.
    ///
    /// - Returns: The number of suppressed events since the key's last line; `nil` to suppress this
    ///   one.
    package mutating func admit(
        _ key: some Hashable, every interval: Duration = .seconds(1), count: Int = 1,
        atMilliseconds now: UInt64
    ) -> Int? {
        let (place, hasDisplaced) = place(of: Self.hash(key, isGroup: false))
        if hasDisplaced {
            if Self.isDue(since: lastNewcomer, interval, now) {
                lastNewcomer = now
            } else {
                records[place].lastLine = lastNewcomer
            }
        }
        guard Self.isDue(since: records[place].lastLine, interval, now) else {
            records[place].heldBack += count
            return nil
        }
        return takeLine(place, now)
    }

    /// Decides about an event whose group has an interval too; both must have passed.
    package mutating func admit(
        _ key: some Hashable, every interval: Duration, in group: some Hashable,
        every groupInterval: Duration = .seconds(1), atMilliseconds now: UInt64
    ) -> HeldBack? {
        let groupPlace = place(of: Self.hash(group, isGroup: true)).index
        let place = place(of: Self.hash(key, isGroup: false)).index
        guard Self.isDue(since: records[place].lastLine, interval, now),
            Self.isDue(since: records[groupPlace].lastLine, groupInterval, now)
        else {
            records[place].heldBack += 1
            records[groupPlace].heldBack += 1
            return nil
        }
        return HeldBack(ofKey: takeLine(place, now), ofGroup: takeLine(groupPlace, now))
    }

    private mutating func takeLine(_ place: Int, _ now: UInt64) -> Int {
        defer { records[place].heldBack = 0 }
        records[place].lastLine = now
        return records[place].heldBack
    }

    private static func isDue(since last: UInt64?, _ interval: Duration, _ now: UInt64) -> Bool {
        guard let last else { return true }
        return .milliseconds(now >= last ? now - last : 0) >= interval
    }

    /// Hashed with a secret of the process, so that peers cannot choose colliding keys.
    private static func hash(_ key: some Hashable, isGroup: Bool) -> Int {
        var hasher = Hasher()
        hasher.combine(isGroup)
        hasher.combine(key)
        return hasher.finalize()
    }

    /// The record of a hash, created if missing, and whether it displaced another.
    private mutating func place(of hash: Int) -> (index: Int, hasDisplaced: Bool) {
        uses += 1
        if let known = places[hash] {
            records[known].lastUse = uses
            return (known, false)
        }
        let new = Record(hash: hash, lastUse: uses)
        guard records.count >= maximumKeys,
            let oldest = records.indices.min(by: { records[$0].lastUse < records[$1].lastUse })
        else {
            records.append(new)
            places[hash] = records.count - 1
            return (records.count - 1, false)
        }
        places[records[oldest].hash] = nil
        records[oldest] = new
        places[hash] = oldest
        return (oldest, true)
    }
}
