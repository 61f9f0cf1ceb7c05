import Structures

/// Detects client identifiers that two peers keep taking over, and delays their take-overs.
///
/// A take-over between two addresses is remembered for a minute. After five within a minute, a peer
/// that was disconnected by one of them and returns waits 1 s, 2 s, 4 s … 30 s; a minute without
/// take-overs resets this. A client that moves between networks never returns to an earlier address
/// and never waits. Addresses are keys, as in ``Shard/open(_:listener:origin:)``. The table has a
/// fixed size: identifiers with the fewest take-overs are evicted first.
package struct TakeOverDamper {
    private struct Entry {
        /// The hash of the client identifier; 0 is a free place.
        var key: UInt64 = 0
        /// Times of the last take-overs, as a ring.
        var times = InlineArray<5, MonotonicTime>(repeating: MonotonicTime(milliseconds: 0))
        /// Addresses disconnected by the last take-overs, as a ring.
        var thrownOut = InlineArray<4, UInt32>(repeating: 0)
        /// Take-overs since the last reset.
        var count: UInt32 = 0
        /// Delayed take-overs among these.
        var delayed: UInt32 = 0
        var lastAt = MonotonicTime(milliseconds: 0)
        /// The time from which a waiting peer may take over; `nil` when none waits.
        var notBefore: MonotonicTime?
        var waiting: Handle?
        /// The names of the peers in the log.
        var peers: [String] = []
    }

    /// The state of a client identifier, for reports.
    package struct Report {
        /// Take-overs since the last reset.
        package var takeOvers: Int
        /// Delay of the next take-over, or of the one that waits.
        package var delayMilliseconds: UInt64
        package var waiting: Handle?
        package var peers: [String]
    }

    package static var takeOversOfAFight: UInt32 { 5 }
    package static var memoryMilliseconds: UInt64 { 60_000 }
    package static var longestDelayMilliseconds: UInt64 { 30_000 }
    private static var ways: Int { 4 }
    private static var setCount: Int { 128 }

    /// Empty until the first take-over between two addresses.
    private var entries: [Entry] = []
    private var lastAt = MonotonicTime(milliseconds: 0)

    /// True after two minutes without take-overs: no peer waits.
    package func isQuiet(_ now: MonotonicTime) -> Bool {
        entries.isEmpty || now.milliseconds(since: lastAt) >= 2 * Self.memoryMilliseconds
    }

    /// Asks whether a peer at address `new` may take over from one at `old`. `nil` allows it and
    /// counts it; otherwise the peer asks again at the returned time.
    package mutating func takeOver(
        _ key: UInt64, from old: UInt32, by new: UInt32, now: MonotonicTime
    ) -> MonotonicTime? {
        let place = claim(key, now)
        if isFight(place, now), isThrownOut(place, new) {
            let notBefore =
                entries[place].notBefore
                ?? now.advanced(byMilliseconds: delay(entries[place].delayed))
            entries[place].notBefore = notBefore
            lastAt = now
            if notBefore > now { return notBefore }
            entries[place].delayed += 1
        }
        entries[place].notBefore = nil
        entries[place].waiting = nil
        entries[place].times[Int(entries[place].count % 5)] = now
        entries[place].thrownOut[Int(entries[place].count % 4)] = old
        entries[place].count += 1
        entries[place].lastAt = now
        lastAt = now
        return nil
    }

    /// Makes `handle` the connection that waits for this identifier; returns the former one.
    package mutating func setWaiting(_ key: UInt64, _ handle: Handle) -> Handle? {
        guard let place = find(key) else { return nil }
        let former = entries[place].waiting
        entries[place].waiting = handle
        return former == handle ? nil : former
    }

    /// The connection that waits to take over this identifier; it may have closed already.
    package func waiting(_ key: UInt64) -> Handle? { find(key).flatMap { entries[$0].waiting } }

    /// Sets the names of the peers in the log.
    package mutating func name(_ key: UInt64, _ peers: [String]) {
        if let place = find(key) { entries[place].peers = peers }
    }

    /// `nil` for an identifier without delayed take-overs.
    package func report(_ key: UInt64, now: MonotonicTime) -> Report? {
        guard let place = find(key), isFight(place, now) else { return nil }
        let entry = entries[place]
        guard entry.delayed > 0 || entry.notBefore != nil else { return nil }
        return Report(
            takeOvers: Int(entry.count), delayMilliseconds: delay(entry.delayed),
            waiting: entry.waiting, peers: entry.peers)
    }

    private func delay(_ delayed: UInt32) -> UInt64 {
        min(1_000 << UInt64(min(delayed, 5)), Self.longestDelayMilliseconds)
    }

    /// True after five take-overs within one minute, until the next reset.
    private func isFight(_ place: Int, _ now: MonotonicTime) -> Bool {
        let entry = entries[place]
        guard entry.count >= Self.takeOversOfAFight,
            now.milliseconds(since: entry.lastAt) < Self.memoryMilliseconds
        else { return false }
        // Delays space the take-overs, so a condition that holds is kept until a quiet minute.
        let fifthLast = entry.times[Int(entry.count % 5)]
        return entry.delayed > 0
            || entry.lastAt.milliseconds(since: fifthLast) <= Self.memoryMilliseconds
    }

    private func isThrownOut(_ place: Int, _ origin: UInt32) -> Bool {
        for index in 0..<4 where entries[place].thrownOut[index] == origin { return true }
        return false
    }

    private func places(_ key: UInt64) -> Range<Int> {
        let first = Int(key % UInt64(Self.setCount)) * Self.ways
        return first..<first + Self.ways
    }

    private func find(_ key: UInt64) -> Int? {
        entries.isEmpty ? nil : places(key).first { entries[$0].key == key }
    }

    /// The place of an identifier. It is cleared if it was another's or a quiet minute has passed.
    private mutating func claim(_ key: UInt64, _ now: MonotonicTime) -> Int {
        if entries.isEmpty {
            entries = [Entry](repeating: Entry(), count: Self.setCount * Self.ways)
        }
        let isRecent = { (entry: Entry) in
            now.milliseconds(since: entry.lastAt) < Self.memoryMilliseconds
        }
        let place =
            find(key)
            ?? places(key).min { left, right in
                let (left, right) = (entries[left], entries[right])
                return (isRecent(left) ? left.count : 0, left.lastAt)
                    < (isRecent(right) ? right.count : 0, right.lastAt)
            } ?? 0
        if entries[place].key != key || !isRecent(entries[place]) {
            let waiting = entries[place].key == key ? entries[place].waiting : nil
            entries[place] = Entry()
            entries[place].key = key
            entries[place].waiting = waiting
        }
        return place
    }
}

/// Two peers take one client identifier over from each other, and the next one waits.
public struct TakeOverReport: Sendable {
    public let clientID: [UInt8]
    /// Equal for both peers: a session belongs to its client identifier and its user name.
    public let userName: [UInt8]?
    public let connected: Handle
    public let waiting: Handle
    public let milliseconds: UInt64
}
