import Glibc

/// The items of one page of a list: the first ones behind a cursor, in the order of their keys'
/// bytes, out of items that are offered in any order.
///
/// It keeps at most twice as many items as the page has room for.
struct PageSelection<Item> {
    /// An item with the key that it is sorted by.
    struct Candidate {
        var key: [UInt8]
        var item: Item
    }

    /// The key of the last item on the previous page; empty for the first page.
    private let after: [UInt8]
    private let limit: Int
    private var candidates: [Candidate] = []
    /// Keys from this one on are not on the page.
    private var bound: [UInt8]?

    init(after: [UInt8], limit: Int) {
        precondition(limit > 0, "a page of \(limit) items")
        self.after = after
        self.limit = limit
    }

    /// One more than the page holds, to know whether another page follows.
    private var capacity: Int { limit + 1 }

    /// False for a key that is not on the page.
    func mayHold(_ key: UnsafeRawBufferPointer) -> Bool {
        guard after.withUnsafeBytes({ Self.precedes($0, key) }) else { return false }
        guard let bound else { return true }
        return bound.withUnsafeBytes { Self.precedes(key, $0) }
    }

    /// False when no key that begins with the eight bytes of `rank`, the most significant first, is
    /// on the page.
    func mayHold(rank: UInt64) -> Bool {
        if let first = Self.rank(of: after), rank < first { return false }
        guard let bound, let last = Self.rank(of: bound) else { return true }
        return rank <= last
    }

    /// Keeps an item if it may be on the page. `drop` gets each item that turns out not to be.
    mutating func offer(_ key: [UInt8], _ item: Item, drop: (Item) -> Void) {
        guard key.withUnsafeBytes({ mayHold($0) }) else {
            drop(item)
            return
        }
        candidates.append(Candidate(key: key, item: item))
        if candidates.count == 2 * capacity { cut(drop) }
    }

    /// The page, once all items were offered, and whether another page follows. `drop` gets the
    /// items that are not on it.
    mutating func finish(drop: (Item) -> Void) -> (page: [Candidate], hasMore: Bool) {
        cut(drop)
        for candidate in candidates.dropFirst(limit) { drop(candidate.item) }
        return (Array(candidates.prefix(limit)), candidates.count > limit)
    }

    private static func rank(of key: [UInt8]) -> UInt64? {
        guard key.count >= 8 else { return nil }
        return key.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func precedes(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
    ) -> Bool {
        let common = min(left.count, right.count)
        if common > 0, let first = left.baseAddress, let second = right.baseAddress {
            let order = memcmp(first, second, common)
            if order != 0 { return order < 0 }
        }
        return left.count < right.count
    }

    private mutating func cut(_ drop: (Item) -> Void) {
        candidates.sort { $0.key.lexicographicallyPrecedes($1.key) }
        guard candidates.count >= capacity else { return }
        for candidate in candidates[capacity...] { drop(candidate.item) }
        candidates.removeLast(candidates.count - capacity)
        bound = candidates[capacity - 1].key
    }
}

/// Keys of lists: text that is sorted by its bytes, and short enough for a cursor in a URL.
enum ListKey {
    /// Longer text sorts by its beginning and its hash.
    static let prefixBytes = 256

    /// The zero byte that ends a prefix occurs in no text of MQTT [MQTT-1.5.3-2].
    static func key(_ text: UnsafeRawBufferPointer, _ hash: (UnsafeRawBufferPointer) -> UInt64)
        -> [UInt8]
    {
        guard text.count > prefixBytes else { return [UInt8](text) }
        var key = [UInt8](text[..<prefixBytes])
        key.append(0)
        withUnsafeBytes(of: hash(text).bigEndian) { key.append(contentsOf: $0) }
        return key
    }
}
