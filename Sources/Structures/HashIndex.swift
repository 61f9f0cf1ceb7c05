/// An open-addressing table from a hash to the index of a record. It stores no keys: the caller
/// compares the records.
///
/// A slot has eight bytes. Probing is linear and the table is at most three quarters full. Removal
/// shifts later slots back, so that there are no tombstones. Growth uses the 32 bits of hash that
/// each slot stores, without touching the records.
public struct HashIndex: ~Copyable {
    struct Slot: BitwiseCopyable {
        var hash: UInt32
        var index: UInt32
    }

    var slots: UnsafeMutablePointer<Slot>
    var mask: Int
    public private(set) var count = 0

    public init() {
        mask = 15
        slots = .allocate(capacity: 16)
        slots.initialize(repeating: Slot(hash: 0, index: noIndex), count: 16)
    }

    deinit { slots.deallocate() }

    /// The first record with this hash for which `isMatch` is true; `nil` without one.
    public func find(_ hash: UInt64, where isMatch: (UInt32) -> Bool) -> UInt32? {
        let short = UInt32(truncatingIfNeeded: hash)
        var position = Int(short) & mask
        while slots[position].index != noIndex {
            if slots[position].hash == short, isMatch(slots[position].index) {
                return slots[position].index
            }
            position = (position + 1) & mask
        }
        return nil
    }

    /// Adds a record, which must not be in the table yet.
    public mutating func insert(_ hash: UInt64, _ index: UInt32) {
        if (count + 1) * 4 > (mask + 1) * 3 { resize(to: (mask + 1) * 2) }
        place(Slot(hash: UInt32(truncatingIfNeeded: hash), index: index))
        count += 1
    }

    /// Removes a record, which must be in the table.
    public mutating func remove(_ hash: UInt64, _ index: UInt32) {
        var position = Int(UInt32(truncatingIfNeeded: hash)) & mask
        while slots[position].index != index {
            precondition(slots[position].index != noIndex, "record \(index) is not in the table")
            position = (position + 1) & mask
        }
        count -= 1
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
        if mask > 63, count * 8 < mask { resize(to: (mask + 1) / 2) }
    }

    public var allocatedBytes: Int { (mask + 1) * MemoryLayout<Slot>.stride }

    private func place(_ slot: Slot) {
        var position = Int(slot.hash) & mask
        while slots[position].index != noIndex { position = (position + 1) & mask }
        slots[position] = slot
    }

    private mutating func resize(to capacity: Int) {
        let old = slots
        let oldCapacity = mask + 1
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: Slot(hash: 0, index: noIndex), count: capacity)
        mask = capacity - 1
        for position in 0..<oldCapacity where old[position].index != noIndex {
            place(old[position])
        }
        old.deallocate()
    }
}
