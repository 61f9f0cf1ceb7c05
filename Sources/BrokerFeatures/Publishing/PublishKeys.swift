import BrokerAPI
import BrokerCore
import Store
import Structures

/// Keys under which the admin plane has published messages, with the first answer to each.
///
/// Keys lie in buckets, each of one hour and of at most a thirty-second of the limit. A bucket is
/// dropped as a whole, in slices: when all its keys are older than 24 h, and above the limit the
/// oldest one. Until its slice comes, a key is found.
struct PublishKeys: ~Copyable {
    struct Record: BitwiseCopyable {
        var key: PublishKey
        /// The next record of its bucket.
        var next: UInt32
    }

    struct Bucket: BitwiseCopyable {
        /// Hours since 1970 in the high bits, a number within the hour in the low 16.
        var number: UInt64
        var first: UInt32
        var count: Int

        var hour: UInt64 { number >> 16 }
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
    /// Oldest first.
    private var buckets = RingBuffer<Bucket>()
    /// True while the oldest bucket is being dropped.
    private var isDropping = false
    /// The highest number of a bucket so far; they only rise, also when the clock is set back.
    private var lastBucket: UInt64 = 0
    /// Keys that were dropped before their time.
    private(set) var droppedEarly: UInt64 = 0

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    /// True when the next turn has keys to drop.
    func hasWork(limit: Int) -> Bool { isDropping || count > limit }

    /// The answer to a repeat; `nil` for a key that is not known.
    func answer(to identity: PublishIdentity) -> PublishOutcome? {
        let found = index.find(hash(of: identity.key)) { records[$0].key.key == identity.key }
        guard let found else { return nil }
        let first = records[found].key
        guard first.digest == identity.digest else { return .keyReused }
        return .repeated(PublishCounts(first), messageID: first.messageID)
    }

    /// Keeps a key that is not known; returns it for the store. `now` is UNIX time in milliseconds.
    mutating func add(
        _ identity: PublishIdentity, _ counts: PublishCounts, limit: Int, at now: Int64
    ) -> PublishKey {
        let begin = Self.hour(at: now) << 16
        let isOpen =
            lastBucket >= begin && buckets.count > (isDropping ? 1 : 0)
            && buckets[buckets.count - 1].count < max(1, limit / 32)
        let key = PublishKey(
            key: identity.key, digest: identity.digest, messageID: identity.messageID,
            bucket: isOpen ? lastBucket : max(lastBucket + 1, begin),
            matched: UInt32(clamping: counts.matched), online: UInt32(clamping: counts.online),
            queued: UInt32(clamping: counts.queued), dropped: UInt32(clamping: counts.dropped))
        insert(key)
        return key
    }

    /// Begins or continues to drop the oldest bucket, if it is its time. In the turn in which it
    /// begins, returns the bucket from which on keys stay.
    mutating func drop(limit: Int, at now: Int64) -> UInt64? {
        guard buckets.count > 0 else { return nil }
        var begin: UInt64?
        if !isDropping {
            let isExpired = buckets[0].hour + Self.hours < Self.hour(at: now)
            guard isExpired || count > limit else { return nil }
            if !isExpired { droppedEarly += UInt64(buckets[0].count) }
            isDropping = true
            begin = buckets[0].number + 1
        }
        var left = Self.droppedPerTurn
        while left > 0, buckets[0].first != noIndex {
            let place = buckets[0].first
            buckets[0].first = records[place].next
            index.remove(hash(of: records[place].key.key), place)
            records.remove(place)
            left -= 1
        }
        if buckets[0].first == noIndex {
            buckets.removeFirst()
            isDropping = false
        }
        return begin
    }

    // MARK: Restoring

    /// Restores a key; buckets come in rising order.
    mutating func restore(_ key: PublishKey) { insert(key) }

    // MARK: Records

    private mutating func insert(_ key: PublishKey) {
        if buckets.count == 0 || buckets[buckets.count - 1].number < key.bucket {
            buckets.append(Bucket(number: key.bucket, first: noIndex, count: 0))
            lastBucket = max(lastBucket, key.bucket)
        }
        let newest = buckets.count - 1
        let place = records.insert(Record(key: key, next: buckets[newest].first))
        buckets[newest].first = place
        buckets[newest].count += 1
        index.insert(hash(of: key.key), place)
    }

    /// Under the process's secret: callers choose what a key is made of.
    private func hash(of key: UInt128) -> UInt64 { withUnsafeBytes(of: key) { hash($0) } }

    private static func hour(at now: Int64) -> UInt64 { UInt64(max(0, now)) / 3_600_000 }
}

extension PublishCounts {
    fileprivate init(_ key: PublishKey) {
        self.init(
            matched: Int(key.matched), online: Int(key.online), queued: Int(key.queued),
            dropped: Int(key.dropped))
    }
}
