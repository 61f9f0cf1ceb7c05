/// A table from a hash to the index of a record, which grows in steps. It stores no keys: the caller
/// compares the records.
///
/// A slot has eight bytes. Slots stand in open-addressing tables of up to 512, each at most three
/// quarters full; a directory finds the table by the first bits of the hash (extendible hashing,
/// Fagin and others, 1979). A full table is split into two, so that no insertion moves more than 512
/// slots, however many records there are. Probing is linear. Removal shifts later slots back, so that
/// there are no tombstones. Growth uses the 32 bits of hash that each slot stores, without touching
/// the records.
public struct HashIndex: ~Copyable {
    struct Slot: BitwiseCopyable {
        var hash: UInt32
        var index: UInt32
    }

    /// One table. Its records share their hash's first ``depth`` bits. The slot before the first
    /// counts the records.
    private struct Table: BitwiseCopyable {
        let slots: UnsafeMutablePointer<Slot>
        let mask: UInt32
        let depth: UInt32

        init(capacity: Int, depth: UInt32) {
            let base = UnsafeMutablePointer<Slot>.allocate(capacity: capacity + 1)
            base.initialize(repeating: Slot(hash: 0, index: noIndex), count: capacity + 1)
            slots = base + 1
            mask = UInt32(capacity - 1)
            self.depth = depth
        }

        var capacity: Int { Int(mask) + 1 }
        var count: Int { Int(slots[-1].hash) }
        var isFull: Bool { (count + 1) * 4 > capacity * 3 }

        func insert(_ slot: Slot) {
            let mask = Int(mask)
            var position = Int(slot.hash) & mask
            while slots[position].index != noIndex { position = (position + 1) & mask }
            slots[position] = slot
            slots[-1].hash += 1
        }

        func remove(_ hash: UInt32, _ index: UInt32) {
            let mask = Int(mask)
            var position = Int(hash) & mask
            while slots[position].index != index {
                precondition(
                    slots[position].index != noIndex, "record \(index) is not in the table")
                position = (position + 1) & mask
            }
            // Shift back every later slot of the run that may stand nearer to its home.
            var hole = position
            var next = (hole + 1) & mask
            while slots[next].index != noIndex {
                let home = Int(slots[next].hash) & mask
                if (next - home) & mask >= (next - hole) & mask {
                    slots[hole] = slots[next]
                    hole = next
                }
                next = (next + 1) & mask
            }
            slots[hole].index = noIndex
            slots[-1].hash -= 1
        }

        /// Calls `body` with every record's slot.
        func forEach(_ body: (Slot) -> Void) {
            for position in 0..<capacity where slots[position].index != noIndex {
                body(slots[position])
            }
        }

        func deallocate() { (slots - 1).deallocate() }
    }

    private static var smallestTable: Int { 16 }
    /// A larger table is split, unless its records' hashes share too many bits.
    private static var largestTable: Int { 512 }
    private static var greatestDepth: UInt32 { 20 }

    /// By the first ``directoryDepth`` bits of a hash; a table of less depth stands there repeatedly.
    private var directory: UnsafeMutablePointer<Table>
    private var directoryDepth: UInt32 = 0
    public private(set) var count = 0
    /// Bytes of all tables.
    public private(set) var allocatedBytes: Int

    public init() {
        directory = .allocate(capacity: 1)
        directory.initialize(to: Table(capacity: Self.smallestTable, depth: 0))
        allocatedBytes = Self.smallestTable * MemoryLayout<Slot>.stride
    }

    deinit {
        var place = 0
        while place < 1 << directoryDepth {
            let table = directory[place]
            place += span(of: table)
            table.deallocate()
        }
        directory.deallocate()
    }

    /// The first record with this hash for which `isMatch` is true; `nil` without one.
    public func find(_ hash: UInt64, where isMatch: (UInt32) -> Bool) -> UInt32? {
        let short = UInt32(truncatingIfNeeded: hash)
        let table = directory[place(of: short)]
        let mask = Int(table.mask)
        var position = Int(short) & mask
        while table.slots[position].index != noIndex {
            if table.slots[position].hash == short, isMatch(table.slots[position].index) {
                return table.slots[position].index
            }
            position = (position + 1) & mask
        }
        return nil
    }

    /// Adds a record, which must not be in the table yet.
    public mutating func insert(_ hash: UInt64, _ index: UInt32) {
        let short = UInt32(truncatingIfNeeded: hash)
        while directory[place(of: short)].isFull { grow(place(of: short)) }
        directory[place(of: short)].insert(Slot(hash: short, index: index))
        count += 1
    }

    /// Removes a record, which must be in the table.
    public mutating func remove(_ hash: UInt64, _ index: UInt32) {
        let short = UInt32(truncatingIfNeeded: hash)
        let table = directory[place(of: short)]
        table.remove(short, index)
        count -= 1
        if table.count * 8 < table.capacity { shrink(short) }
    }

    // MARK: Growth

    @inline(__always)
    private func place(of hash: UInt32) -> Int {
        Int(truncatingIfNeeded: (UInt64(hash) << UInt64(directoryDepth)) >> 32)
    }

    /// The number of the directory's entries that name this table.
    private func span(of table: Table) -> Int { 1 << (directoryDepth - table.depth) }

    private mutating func grow(_ place: Int) {
        let table = directory[place]
        if table.capacity < Self.largestTable || table.depth == Self.greatestDepth {
            replace(table, at: place, capacity: table.capacity * 2)
            return
        }
        if table.depth == directoryDepth { doubleDirectory() }
        split(table)
    }

    /// Moves a table's records to one of another capacity.
    private mutating func replace(_ table: Table, at place: Int, capacity: Int) {
        let larger = allocate(capacity, depth: table.depth)
        table.forEach { larger.insert($0) }
        enter(larger, at: place)
        free(table)
    }

    private mutating func split(_ table: Table) {
        let low = allocate(table.capacity, depth: table.depth + 1)
        let high = allocate(table.capacity, depth: table.depth + 1)
        var sample: UInt32 = 0
        table.forEach { slot in
            sample = slot.hash
            ((slot.hash << table.depth) >> 31 == 0 ? low : high).insert(slot)
        }
        // Every record of the table leads to its first entry.
        let start = place(of: sample) & ~(span(of: table) - 1)
        enter(low, at: start)
        enter(high, at: start + span(of: high))
        free(table)
    }

    /// Writes a table to all its entries; `place` is one of them.
    private func enter(_ table: Table, at place: Int) {
        let span = span(of: table)
        let start = place & ~(span - 1)
        for entry in start..<start + span { directory[entry] = table }
    }

    private mutating func doubleDirectory() {
        let entries = 1 << directoryDepth
        let larger = UnsafeMutablePointer<Table>.allocate(capacity: 2 * entries)
        for entry in 0..<entries {
            (larger + 2 * entry).initialize(repeating: directory[entry], count: 2)
        }
        directory.deallocate()
        directory = larger
        directoryDepth += 1
    }

    // MARK: Shrinking

    /// Joins the table of this hash with its neighbour while both are nearly empty; the last one
    /// becomes smaller.
    private mutating func shrink(_ hash: UInt32) {
        while true {
            let place = place(of: hash)
            let table = directory[place]
            guard table.depth > 0, table.capacity == Self.largestTable else {
                if table.capacity > 4 * Self.smallestTable {
                    replace(table, at: place, capacity: table.capacity / 2)
                }
                return
            }
            let span = span(of: table)
            let neighbour = directory[place & ~(span - 1) ^ span]
            guard neighbour.depth == table.depth, neighbour.capacity == table.capacity,
                (table.count + neighbour.count) * 4 <= table.capacity
            else { return }
            let joined = allocate(table.capacity, depth: table.depth - 1)
            table.forEach { joined.insert($0) }
            neighbour.forEach { joined.insert($0) }
            enter(joined, at: place)
            free(table)
            free(neighbour)
            if joined.depth + 1 == directoryDepth { halveDirectory() }
            guard joined.count * 8 < joined.capacity else { return }
        }
    }

    /// Halves the directory when no table needs its last bit.
    private mutating func halveDirectory() {
        let entries = 1 << (directoryDepth - 1)
        for entry in 0..<entries where directory[2 * entry].depth == directoryDepth { return }
        let smaller = UnsafeMutablePointer<Table>.allocate(capacity: entries)
        for entry in 0..<entries { (smaller + entry).initialize(to: directory[2 * entry]) }
        directory.deallocate()
        directory = smaller
        directoryDepth -= 1
    }

    private mutating func allocate(_ capacity: Int, depth: UInt32) -> Table {
        allocatedBytes += capacity * MemoryLayout<Slot>.stride
        return Table(capacity: capacity, depth: depth)
    }

    private mutating func free(_ table: Table) {
        allocatedBytes -= table.capacity * MemoryLayout<Slot>.stride
        table.deallocate()
    }
}
