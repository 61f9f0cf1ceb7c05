/// Decides which events are logged, so that a flood of them stays a few lines.
///
/// Events with one key count together: the first is logged at once, later ones once per interval at
/// most, and each line says how many events were held back before it. Of a key only a hash is kept,
/// so that keys which peers choose take no room. When more than `maximumKeys` are in use, a new key
/// displaces the one that was unused for longest. Such new keys have one line per interval together,
/// so that nobody gets a line per event by inventing keys.
///
/// Time is an argument: monotonic milliseconds from any origin. A clock that runs backwards counts as
/// one that stands.
package struct LogLimiter: Sendable {
    /// The events that were not logged before a line.
    package struct HeldBack: Equatable, Sendable {
        /// Those with the line's key.
        package var ofKey: Int
        /// Those of the line's group, whatever their key.
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
    /// The time of the last line of a key that displaced another.
    private var lastNewcomer: UInt64?

    /// Remembers at most `maximumKeys` keys and groups, 2 or more.
    package init(maximumKeys: Int = 256) {
        precondition(maximumKeys >= 2, "a limiter for \(maximumKeys) keys")
        self.maximumKeys = maximumKeys
    }

    /// Judges an event with this key that happens now.
    ///
    /// - Returns: How many events with the key were held back since its last line; `nil` when this
    ///   one is held back, too.
    package mutating func admit(
        _ key: some Hashable, every interval: Duration = .seconds(1), atMilliseconds now: UInt64
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
            records[place].heldBack += 1
            return nil
        }
        return takeLine(place, now)
    }

    /// Judges an event whose key belongs to a group that has an interval of its own: a line is due
    /// when both intervals are over.
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

    /// Keys are hashed under a secret of the process, so that peers cannot choose keys that collide.
    private static func hash(_ key: some Hashable, isGroup: Bool) -> Int {
        var hasher = Hasher()
        hasher.combine(isGroup)
        hasher.combine(key)
        return hasher.finalize()
    }

    /// The record of a hash, which is made if there is none, and whether that displaced another.
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
