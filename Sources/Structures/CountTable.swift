/// One of the tables of ``KeyCounts``; its owner calls ``deallocate()``.
///
/// Probing is linear and the table is at most three quarters full. Removal shifts later slots back,
/// so that there are no tombstones.
struct CountTable: BitwiseCopyable {
    private struct Slot: BitwiseCopyable {
        var key: UInt32
        var count: UInt32
    }

    private static var smallestCapacity: Int { 4 }

    private var slots: UnsafeMutablePointer<Slot>
    private var mask: Int
    private var keyCount = 0

    init() {
        mask = Self.smallestCapacity - 1
        slots = Self.allocate(Self.smallestCapacity)
    }

    func deallocate() { slots.deallocate() }

    subscript(key: UInt32) -> UInt32 { slots[position(of: key)].count }

    /// Raises a key's count; true when it was 0.
    mutating func add(_ key: UInt32, _ amount: UInt32) -> Bool {
        var place = position(of: key)
        let isNew = slots[place].key == 0
        if isNew {
            if (keyCount + 1) * 4 > (mask + 1) * 3 {
                resize(to: (mask + 1) * 2)
                place = position(of: key)
            }
            keyCount += 1
            slots[place].key = key
        }
        slots[place].count += amount
        return isNew
    }

    /// Lowers a key's count, which must be at least `amount`; true when it is 0 now.
    mutating func remove(_ key: UInt32, _ amount: UInt32) -> Bool {
        let place = position(of: key)
        precondition(
            slots[place].count >= amount, "\(amount) less of key \(key), which has fewer")
        slots[place].count -= amount
        guard slots[place].count == 0 else { return false }
        empty(place)
        return true
    }

    var allocatedBytes: Int { (mask + 1) * MemoryLayout<Slot>.stride }

    /// The slot of the key, or the free slot that it would take.
    private func position(of key: UInt32) -> Int {
        var position = Int(key) & mask
        while slots[position].key != key, slots[position].key != 0 {
            position = (position + 1) & mask
        }
        return position
    }

    private mutating func empty(_ position: Int) {
        keyCount -= 1
        // Shift back every later slot of the run that may stand nearer to its home.
        var hole = position
        var next = (hole + 1) & mask
        while slots[next].key != 0 {
            let home = Int(slots[next].key) & mask
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = Slot(key: 0, count: 0)
        if mask >= Self.smallestCapacity, keyCount * 8 < mask { resize(to: (mask + 1) / 2) }
    }

    private mutating func resize(to capacity: Int) {
        let old = slots
        let oldCapacity = mask + 1
        slots = Self.allocate(capacity)
        mask = capacity - 1
        for place in 0..<oldCapacity where old[place].key != 0 {
            slots[position(of: old[place].key)] = old[place]
        }
        old.deallocate()
    }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
        slots.initialize(repeating: Slot(key: 0, count: 0), count: capacity)
        return slots
    }
}
