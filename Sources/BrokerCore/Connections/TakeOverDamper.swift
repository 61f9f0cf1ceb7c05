import Structures

/// Knows which client identifiers are fought over, and lets their next take-over wait.
///
/// A take-over between two addresses is remembered for a minute. When there have been five within one
/// minute, whoever was thrown out in it and comes back waits 1 s, 2 s, 4 s … 30 s before it takes over
/// again; a quiet minute forgets everything. A client that moves on from network to network never comes
/// back to where it was thrown out, and never waits. Addresses are keys, as ``Shard/open(_:listener:origin:)``
/// takes them. The table is of fixed size: identifiers with the fewest take-overs give way first.
struct TakeOverDamper {
    private struct Entry {
        /// The hash of the client identifier; 0 is a free place.
        var key: UInt64 = 0
        /// The last take-overs, in turn.
        var times = InlineArray<5, MonotonicTime>(repeating: MonotonicTime(milliseconds: 0))
        /// Addresses that were thrown out last, in turn.
        var thrownOut = InlineArray<4, UInt32>(repeating: 0)
        /// Take-overs since a quiet minute.
        var count: UInt32 = 0
        /// Of these, the ones that had to wait.
        var delayed: UInt32 = 0
        var lastAt = MonotonicTime(milliseconds: 0)
        /// Whoever waits may take over from here on; `nil` while nobody has come to wait.
        var notBefore: MonotonicTime?
        var waiting: Handle?
        /// As the log named them.
        var peers: [String] = []
    }

    /// What is known of a client identifier that is fought over.
    struct Report {
        /// Since the last quiet minute.
        var takeOvers: Int
        /// How long the next one waits, or has to wait since it came.
        var delayMilliseconds: UInt64
        var waiting: Handle?
        var peers: [String]
    }

    static var takeOversOfAFight: UInt32 { 5 }
    static var memoryMilliseconds: UInt64 { 60_000 }
    static var longestDelayMilliseconds: UInt64 { 30_000 }
    private static var ways: Int { 4 }
    private static var setCount: Int { 128 }

    /// Empty until somebody is taken over from another address.
    private var entries: [Entry] = []
    private var lastAt = MonotonicTime(milliseconds: 0)

    /// Whether there has been nothing for a while, so that nobody waits.
    func isQuiet(_ now: MonotonicTime) -> Bool {
        entries.isEmpty || now.milliseconds(since: lastAt) >= 2 * Self.memoryMilliseconds
    }

    /// Somebody at address `new` comes to take over from one at `old`. `nil` lets it, and counts it; else
    /// it may ask again at the time returned.
    mutating func takeOver(
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

    /// Puts one in the place of whoever waits for this identifier, and returns that one.
    mutating func setWaiting(_ key: UInt64, _ handle: Handle) -> Handle? {
        guard let place = find(key) else { return nil }
        let former = entries[place].waiting
        entries[place].waiting = handle
        return former == handle ? nil : former
    }

    /// Whoever waits to take over this identifier; it may be gone already.
    func waiting(_ key: UInt64) -> Handle? { find(key).flatMap { entries[$0].waiting } }

    /// What the log calls the peers.
    mutating func name(_ key: UInt64, _ peers: [String]) {
        if let place = find(key) { entries[place].peers = peers }
    }

    /// `nil` for an identifier over which nobody has had to wait.
    func report(_ key: UInt64, now: MonotonicTime) -> Report? {
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

    /// Five within one minute, and no quiet minute since.
    private func isFight(_ place: Int, _ now: MonotonicTime) -> Bool {
        let entry = entries[place]
        guard entry.count >= Self.takeOversOfAFight,
            now.milliseconds(since: entry.lastAt) < Self.memoryMilliseconds
        else { return false }
        // Once it has come to waiting, take-overs are rarer because they wait.
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

    /// The place of an identifier, made empty if it was another's or if a quiet minute has passed.
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

/// Two peers throw each other out, and the next one waits.
package struct TakeOverReport: Sendable {
    package let clientIdentifier: [UInt8]
    /// Both have it: a session belongs to its client identifier and its user.
    package let userName: [UInt8]?
    package let connected: Handle
    package let waiting: Handle
    package let milliseconds: UInt64
}
