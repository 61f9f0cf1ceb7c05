import BrokerAPI
import BrokerCore
import Store
import Structures

/// Keys under which the admin plane has published messages, with the first answer to each.
///
/// Keys lie in buckets, each of one owner, of one hour and of at most a thirty-second of the limit. A
/// bucket is dropped as a whole, in slices: when all its keys are older than 24 h, and above the
/// limit the oldest of the owner that has the most keys, so that none drops another's. Until its
/// slice comes, a key is found.
struct PublishKeys: ~Copyable {
    struct Record: BitwiseCopyable {
        var key: PublishKey
        /// The next record of its bucket.
        var next: UInt32
    }

    struct Bucket: BitwiseCopyable {
        /// Hours since 1970 in the high bits, a number within the hour in the low 16. No two
        /// buckets have the same.
        var number: UInt64
        var first: UInt32
        var count: Int

        var hour: UInt64 { number >> 16 }
    }

    /// The keys of one owner.
    fileprivate struct Share {
        /// Oldest first.
        var buckets: [Bucket] = []
        var count = 0
    }

    /// Keys of whole hours count for at least this many of them.
    private static var hours: UInt64 { 24 }
    /// Keys that are dropped in a turn.
    private static var droppedPerTurn: Int { 1_024 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private var records = Slab<Record>()
    private var index = HashIndex()
    /// By owner; at most one for each name of a token.
    private var shares: [UInt32: Share] = [:]
    /// The owner whose oldest bucket is being dropped.
    private var dropping: UInt32?
    /// The hour of the last turn that found no key too old; a new one never is.
    private var checkedHour: UInt64?
    /// The highest number of a bucket so far; they only rise, also when the clock is set back.
    private var lastBucket: UInt64 = 0
    /// Keys that were dropped before their time.
    private(set) var droppedEarly: UInt64 = 0

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    /// True when the next turn has keys to drop.
    func hasWork(limit: Int) -> Bool { dropping != nil || count > limit }

    /// The answer to a repeat; `nil` for a key that is not known.
    func answer(to identity: PublishIdentity) -> PublishOutcome? {
        let found = index.find(hash(of: identity.key)) { records[$0].key.key == identity.key }
        guard let found else { return nil }
        let first = records[found].key
        guard first.digest == identity.digest else { return .keyReused }
        return .repeated(PublishCounts(first), messageID: first.messageID)
    }

    /// Keeps a key that is not known.
    ///
    /// - Parameters:
    ///   - identity: The key.
    ///   - owner: Who gave it.
    ///   - counts: The answer to its repeats.
    ///   - limit: The most keys that are kept.
    ///   - now: UNIX time in milliseconds.
    /// - Returns: The key for the store.
    mutating func add(
        _ identity: PublishIdentity, of owner: OwnerID, _ counts: PublishCounts, limit: Int,
        at now: Int64
    ) -> PublishKey {
        let share = UInt32(truncatingIfNeeded: owner.rawValue)
        let key = PublishKey(
            key: identity.key, digest: identity.digest, messageID: identity.messageID,
            bucket: openBucket(of: share, limit: limit, at: now), owner: share,
            matched: UInt32(clamping: counts.matched), online: UInt32(clamping: counts.online),
            queued: UInt32(clamping: counts.queued), dropped: UInt32(clamping: counts.dropped),
            notRetained: counts.notRetained?.storedNumber ?? 0)
        insert(key)
        return key
    }

    /// The number of the bucket that the owner's next key lies in; a new one when its last is full,
    /// of an earlier hour, or being dropped.
    private func openBucket(of owner: UInt32, limit: Int, at now: Int64) -> UInt64 {
        let begin = Self.hour(at: now) << 16
        if let share = shares[owner], share.buckets.count > (dropping == owner ? 1 : 0) {
            let last = share.buckets[share.buckets.count - 1]
            if last.number >= begin, last.count < max(1, limit / 32) { return last.number }
        }
        return max(lastBucket + 1, begin)
    }

    /// Begins or continues to drop a bucket, if it is time for one. In the turn in which it begins,
    /// returns the number of the bucket.
    mutating func drop(limit: Int, at now: Int64) -> UInt64? {
        var begun: UInt64?
        if dropping == nil {
            guard count > limit || checkedHour != Self.hour(at: now),
                let owner = ownerToDrop(limit: limit, at: now),
                let oldest = shares[owner]?.buckets[0]
            else { return nil }
            if !Self.isExpired(oldest, at: now) { droppedEarly += UInt64(oldest.count) }
            dropping = owner
            begun = oldest.number
        }
        if let owner = dropping, var share = shares.removeValue(forKey: owner) {
            dropSlice(of: &share)
            if share.buckets.count > 0 { shares[owner] = share }
        }
        return begun
    }

    /// The owner whose oldest bucket goes next: one whose keys are too old, or above the limit the
    /// one with the most keys.
    private mutating func ownerToDrop(limit: Int, at now: Int64) -> UInt32? {
        if let expired = shares.first(where: { Self.isExpired($0.value.buckets[0], at: now) }) {
            return expired.key
        }
        checkedHour = Self.hour(at: now)
        return count > limit ? shares.max { $0.value.count < $1.value.count }?.key : nil
    }

    private mutating func dropSlice(of share: inout Share) {
        var left = Self.droppedPerTurn
        while left > 0, share.buckets[0].first != noIndex {
            let place = share.buckets[0].first
            share.buckets[0].first = records[place].next
            index.remove(hash(of: records[place].key.key), place)
            records.remove(place)
            share.count -= 1
            left -= 1
        }
        if share.buckets[0].first == noIndex {
            share.buckets.removeFirst()
            dropping = nil
        }
    }

    // MARK: Restoring

    /// Restores a key; buckets come in rising order.
    mutating func restore(_ key: PublishKey) { insert(key) }

    // MARK: Records

    private mutating func insert(_ key: PublishKey) {
        let place = records.insert(Record(key: key, next: noIndex))
        records[place].next = shares[key.owner, default: Share()].add(place, key.bucket)
        lastBucket = max(lastBucket, key.bucket)
        index.insert(hash(of: key.key), place)
    }

    /// Under the process's secret: callers choose what a key is made of.
    private func hash(of key: UInt128) -> UInt64 { withUnsafeBytes(of: key) { hash($0) } }

    private static func isExpired(_ bucket: Bucket, at now: Int64) -> Bool {
        bucket.hour + hours < hour(at: now)
    }

    private static func hour(at now: Int64) -> UInt64 { UInt64(max(0, now)) / 3_600_000 }
}

extension PublishKeys.Share {
    /// Adds a key to its bucket, which is the youngest; returns the place of the one that was added
    /// to it before.
    fileprivate mutating func add(_ place: UInt32, _ bucket: UInt64) -> UInt32 {
        if buckets.count == 0 || buckets[buckets.count - 1].number < bucket {
            buckets.append(PublishKeys.Bucket(number: bucket, first: noIndex, count: 0))
        }
        let newest = buckets.count - 1
        let former = buckets[newest].first
        buckets[newest].first = place
        buckets[newest].count += 1
        count += 1
        return former
    }
}

extension PublishCounts {
    fileprivate init(_ key: PublishKey) {
        self.init(
            matched: Int(key.matched), online: Int(key.online), queued: Int(key.queued),
            dropped: Int(key.dropped))
        notRetained = NotRetained(storedNumber: key.notRetained)
    }
}

extension PublishKeys {
    var figures: [FeatureFigure] {
        [
            .gauge(
                "hermes_idempotency_keys",
                "Keys of messages published over HTTP, kept for repeats.", count),
            .counter(
                "hermes_idempotency_keys_dropped_total",
                "Keys dropped within 24 hours, because there were too many.", droppedEarly),
        ]
    }
}
