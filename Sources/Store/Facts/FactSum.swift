/// What several segments say about facts, one after the other, for a start.
struct FactSum {
    private struct Place: BitwiseCopyable {
        let segment: Int32
        let entry: Int32
        var isRemoved: Bool
    }

    private let segments: [FactChanges]
    /// By table and key; the last change of each.
    private var places: [Place] = []
    /// The removals of all segments, by table and first key. They cover facts of the database too.
    private let removals: [FactChanges.Removal]

    /// - Parameter segments: Oldest first, each sorted.
    init(_ segments: [FactChanges]) {
        self.segments = segments
        removals = segments.flatMap(\.removals).sorted { one, other in
            one.table != other.table
                ? one.table < other.table : one.from.lexicographicallyPrecedes(other.from)
        }
        for segment in segments.indices { add(segment) }
    }

    private mutating func add(_ segment: Int) {
        for removal in segments[segment].removals {
            removal.withKeys { from, below in
                let first = index(notBelow: from)
                let end = max(first, index(notBelow: below))
                for index in first..<end { places[index].isRemoved = true }
            }
        }
        guard !segments[segment].entries.isEmpty else { return }
        var merged: [Place] = []
        merged.reserveCapacity(places.count + segments[segment].entries.count)
        var rest = places[...]
        for (index, entry) in segments[segment].entries.enumerated() {
            segments[segment].bytes.withUnsafeBytes { bytes in
                let key = entry.key(in: bytes)
                while let first = rest.first, withKey(first, { $0 < key }) {
                    merged.append(first)
                    rest.removeFirst()
                }
                if let first = rest.first, withKey(first, { $0 == key }) { rest.removeFirst() }
            }
            merged.append(
                Place(
                    segment: Int32(segment), entry: Int32(index),
                    isRemoved: entry.state != .stored))
        }
        places = merged + rest
    }

    private func withKey<Result>(_ place: Place, _ body: (FactKey) -> Result) -> Result {
        let changes = segments[Int(place.segment)]
        return changes.bytes.withUnsafeBytes {
            body(changes.entries[Int(place.entry)].key(in: $0))
        }
    }

    private func index(notBelow key: FactKey) -> Int {
        var (low, high) = (0, places.count)
        while low < high {
            let middle = (low + high) / 2
            if withKey(places[middle], { $0 < key }) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Hands out the facts of the database as the segments change them, by table and key.
    func forEach(
        beyond database: Database, _ body: (StoredFact) -> Void
    ) throws(StoreFailure) {
        var rest = places[...]
        var removed = RemovedFacts(removals)
        try database.forEachFact { stored in
            let key = FactKey(stored.table, stored.key)
            while let first = rest.first, withKey(first, { $0 < key }) {
                handOut(first, body)
                rest.removeFirst()
            }
            if let first = rest.first, withKey(first, { $0 == key }) {
                handOut(first, body)
                rest.removeFirst()
            } else if !removed.covers(key) {
                body(stored)
            }
        }
        for place in rest { handOut(place, body) }
    }

    private func handOut(_ place: Place, _ body: (StoredFact) -> Void) {
        guard !place.isRemoved else { return }
        let changes = segments[Int(place.segment)]
        let entry = changes.entries[Int(place.entry)]
        changes.bytes.withUnsafeBytes { bytes in
            body(
                StoredFact(
                    table: entry.table, owner: entry.owner, key: entry.key(in: bytes).bytes,
                    value: entry.value(in: bytes)))
        }
    }
}

/// Removals of ranges, asked about keys in rising order.
private struct RemovedFacts {
    private var rest: ArraySlice<FactChanges.Removal>
    /// The removal that ends last among those that begin at or before the last key.
    private var current: FactChanges.Removal?

    /// - Parameter removals: By table and first key.
    init(_ removals: [FactChanges.Removal]) { rest = removals[...] }

    mutating func covers(_ key: FactKey) -> Bool {
        while let next = rest.first, next.withKeys({ from, _ in !(key < from) }) {
            if let current, current.table == next.table,
                next.below.lexicographicallyPrecedes(current.below)
            {
                rest.removeFirst()
            } else {
                current = next
                rest.removeFirst()
            }
        }
        return current?.covers(key) ?? false
    }
}

extension JournalOverlay {
    /// Hands the facts to `visitor`, by table and key. Returns how many of each table made no sense
    /// to it.
    func restoreFacts(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) -> [UInt8: Int] {
        var damaged: [UInt8: Int] = [:]
        let sum = FactSum(
            (sealed + [active]).map { segment in
                var changes = segment.facts.changes
                changes.sort()
                return changes
            })
        try sum.forEach(beyond: database) { fact in
            if !visitor.visit(fact) { damaged[fact.table, default: 0] += 1 }
        }
        return damaged
    }
}
