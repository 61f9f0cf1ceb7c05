/// Counts per key, such as connections per address. A key with a count above 0 takes 8 bytes at
/// least, a key with count 0 none.
///
/// Keys are 32 bits of a keyed hash, so that peers cannot choose keys that collide; 0 is not a key.
/// Two peers with equal keys are counted together. Probing is linear and the table is at most three
/// quarters full. Removal shifts later slots back, so that there are no tombstones.
public struct KeyCounts: ~Copyable {
    private struct Slot: BitwiseCopyable {
        var key: UInt32
        var count: UInt32
    }

    private static var smallestCapacity: Int { 64 }

    private var slots: UnsafeMutablePointer<Slot>
    private var mask: Int
    /// Number of keys with a count above 0.
    public private(set) var keyCount = 0

    public init() {
        mask = Self.smallestCapacity - 1
        slots = Self.allocate(Self.smallestCapacity)
    }

    deinit { slots.deallocate() }

    public subscript(key: UInt32) -> Int { Int(slots[position(of: key)].count) }

    /// Raises a key's count.
    public mutating func add(_ key: UInt32, _ amount: UInt32 = 1) {
        precondition(key != 0, "0 is no key")
        var place = position(of: key)
        if slots[place].key == 0 {
            if (keyCount + 1) * 4 > (mask + 1) * 3 {
                resize(to: (mask + 1) * 2)
                place = position(of: key)
            }
            keyCount += 1
            slots[place].key = key
        }
        slots[place].count += amount
    }

    /// Lowers a key's count, which must be at least `amount`.
    public mutating func remove(_ key: UInt32, _ amount: UInt32 = 1) {
        let place = position(of: key)
        precondition(
            slots[place].count >= amount, "\(amount) less of key \(key), which has fewer")
        slots[place].count -= amount
        if slots[place].count == 0 { empty(place) }
    }

    public var allocatedBytes: Int { (mask + 1) * MemoryLayout<Slot>.stride }

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
