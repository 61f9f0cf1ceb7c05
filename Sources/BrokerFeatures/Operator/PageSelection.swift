import BrokerCore

/// The items of one page of a list: the first ones behind a cursor, in the order of their keys'
/// bytes, out of items that are offered in any order.
///
/// It keeps at most twice as many items as the page has room for.
struct PageSelection<Item> {
    /// An item with the key that it is sorted by.
    struct Candidate {
        var key: SortKey
        var item: Item
    }

    /// The key of the last item on the previous page; `nil` for the first page.
    private let after: SortKey?
    private let limit: Int
    private var candidates: [Candidate] = []
    /// Keys from this one on are not on the page.
    private var bound: SortKey?

    init(after: SortKey?, limit: Int) {
        precondition(limit > 0, "a page of \(limit) items")
        self.after = after
        self.limit = limit
    }

    /// One more than the page holds, to know whether another page follows.
    private var capacity: Int { limit + 1 }

    /// False for a key that is not on the page.
    func mayHold(_ text: UnsafeRawBufferPointer, rank: UInt64 = 0) -> Bool {
        if let after, !after.precedes(text, rank: rank) { return false }
        guard let bound else { return true }
        return bound.follows(text, rank: rank)
    }

    /// False when no key with this rank is on the page.
    func mayHold(rank: UInt64) -> Bool {
        if let after, rank < after.rank { return false }
        guard let bound else { return true }
        return rank <= bound.rank
    }

    /// Keeps an item if it may be on the page. `drop` gets each item that turns out not to be.
    mutating func offer(_ key: SortKey, _ item: Item, drop: (Item) -> Void) {
        guard key.text.withUnsafeBytes({ mayHold($0, rank: key.rank) }) else {
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

    private mutating func cut(_ drop: (Item) -> Void) {
        candidates.sort { $0.key < $1.key }
        guard candidates.count >= capacity else { return }
        for candidate in candidates[capacity...] { drop(candidate.item) }
        candidates.removeLast(candidates.count - capacity)
        bound = candidates[capacity - 1].key
    }
}
