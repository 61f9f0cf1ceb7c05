/// A ``TokenBucket`` per key, for at most ``capacity`` keys at a time.
///
/// A key that is not remembered has a full bucket. Each key may stand in four places. When another
/// key takes all four, the newcomer replaces the key with the fullest bucket, so that a flood of
/// keys that appear once does not push out a key that appears again and again. Keys are 32 bits of
/// a keyed hash; 0 is not a key.
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

    /// The largest number of keys that are remembered.
    public static var capacity: Int { setCount * ways }

    /// Takes a token from a key's bucket; false when it is empty.
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
