/// A ``TokenBucket`` for each key, of which only so many are remembered.
///
/// A key that is not remembered has a full bucket. Among the four places that a key may have, the one
/// whose bucket is fullest gives way to a newcomer, so that a flood of keys that come once each does not
/// make it forget one that comes again and again. Keys are 32 bits of a keyed hash; 0 is no key.
public struct KeyRates: ~Copyable {
    private struct Entry: BitwiseCopyable {
        var key: UInt32 = 0
        var bucket = TokenBucket()
    }

    private static var ways: Int { 4 }
    private static var setCount: Int { 1_024 }

    private let entries: UnsafeMutablePointer<Entry>

    public init() {
        let count = Self.setCount * Self.ways
        entries = .allocate(capacity: count)
        entries.initialize(repeating: Entry(), count: count)
    }

    deinit { entries.deallocate() }

    /// The keys that are remembered at most.
    public static var capacity: Int { setCount * ways }

    /// Takes a token of a key; false when it has none left.
    public mutating func take(_ key: UInt32, rate: Int, now: MonotonicTime) -> Bool {
        precondition(key != 0, "0 is no key")
        let first = (Int(key) & (Self.setCount - 1)) * Self.ways
        var chosen = first
        var mostLeft = -1
        for place in first..<first + Self.ways {
            if entries[place].key == key {
                return entries[place].bucket.take(rate: rate, now: now)
            }
            let left =
                entries[place].key == 0
                ? Int.max : entries[place].bucket.left(rate: rate, now: now)
            if left > mostLeft {
                mostLeft = left
                chosen = place
            }
        }
        entries[chosen] = Entry(key: key)
        return entries[chosen].bucket.take(rate: rate, now: now)
    }
}
