/// A segment's changes of facts, as the database takes them.
///
/// Keys and values lie in one buffer, so that a fact needs no memory of its own.
public struct FactChanges: Sendable {
    struct Entry: BitwiseCopyable, Sendable {
        enum State: UInt8 {
            case stored
            case removed
            /// A new fact that was removed within the segment; nothing is left of it.
            case forgotten
        }

        let keyOffset: UInt32
        let keyCount: UInt32
        var valueOffset: UInt32 = 0
        var valueCount: UInt32 = 0
        /// Tells which came first, this change or a ``Removal``.
        var order: UInt32
        let table: UInt8
        let owner: FactOwner
        var state: State
        /// True when the database has no fact of this key.
        let isNew: Bool
    }

    /// All facts of a table from one key on and below another one were removed.
    struct Removal: Hashable, Sendable {
        let table: UInt8
        let from: [UInt8]
        let below: [UInt8]
        let order: UInt32

        /// True when this removal takes everything that the other one does.
        func covers(_ other: Removal) -> Bool {
            table == other.table && !other.from.lexicographicallyPrecedes(from)
                && !below.lexicographicallyPrecedes(other.below)
        }

        func covers(_ key: FactKey) -> Bool {
            guard key.table == table else { return false }
            return withKeys { from, below in !(key < from) && key < below }
        }

        func withKeys<Result>(_ body: (FactKey, FactKey) -> Result) -> Result {
            from.withUnsafeBytes { from in
                below.withUnsafeBytes { below in
                    body(FactKey(table, from), FactKey(table, below))
                }
            }
        }
    }

    /// Never empty, so that an empty key or value has an address.
    var bytes: [UInt8] = [0]
    /// By table and key once sorted.
    var entries: [Entry] = []
    /// The database applies these before the entries. By table and first key once sorted.
    var removals: [Removal] = []

    public init() {}

    /// Puts the changes in the order of the database, and leaves out entries that a removal after
    /// them has taken.
    mutating func sort() {
        entries.removeAll { $0.state == .forgotten }
        bytes.withUnsafeBytes { bytes in
            entries.sort { $0.key(in: bytes) < $1.key(in: bytes) }
        }
        guard !removals.isEmpty else { return }
        for removal in removals {
            for index in range(of: removal) where entries[index].order < removal.order {
                entries[index].state = .forgotten
            }
        }
        entries.removeAll { $0.state == .forgotten }
        removals.sort { one, other in
            one.table != other.table
                ? one.table < other.table : one.from.lexicographicallyPrecedes(other.from)
        }
    }

    /// The entries that a removal names; they must be sorted.
    func range(of removal: Removal) -> Range<Int> {
        removal.withKeys { from, below in
            let first = index(notBelow: from)
            return first..<max(first, index(notBelow: below))
        }
    }

    private func index(notBelow key: FactKey) -> Int {
        bytes.withUnsafeBytes { bytes in
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].key(in: bytes) < key { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}

extension FactChanges.Entry {
    func key(in bytes: UnsafeRawBufferPointer) -> FactKey {
        FactKey(table, UnsafeRawBufferPointer(rebasing: bytes[Int(keyOffset)..<keyEnd]))
    }

    func value(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = Int(valueOffset)
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(valueCount)])
    }

    private var keyEnd: Int { Int(keyOffset) + Int(keyCount) }
}
