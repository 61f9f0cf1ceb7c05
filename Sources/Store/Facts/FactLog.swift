import Structures

/// The facts in a segment of the journal: the last change of each key.
struct FactLog: ~Copyable {
    private(set) var changes = FactChanges()
    private var index = HashIndex()
    /// Clients choose parts of keys, so the hash has a secret.
    private let hash = KeyedHash(seed: .random(in: .min ... .max))
    private var order: UInt32 = 0
    /// Entries of which something is left.
    private var count = 0

    var isEmpty: Bool { count == 0 && changes.removals.isEmpty }

    mutating func put(
        _ key: FactKey, of owner: FactOwner, _ value: UnsafeRawBufferPointer, isNew: Bool
    ) {
        let place = find(key) ?? add(key, owner, isNew: isNew)
        let former = changes.entries[place].valueCount
        changes.entries[place].state = .stored
        changes.entries[place].order = nextOrder()
        if value.count > Int(former) || former == 0 {
            changes.entries[place].valueOffset = UInt32(changes.bytes.count)
            changes.bytes.append(contentsOf: value)
        } else {
            let offset = Int(changes.entries[place].valueOffset)
            changes.bytes.withUnsafeMutableBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + value.count])
                    .copyMemory(from: value)
            }
        }
        changes.entries[place].valueCount = UInt32(value.count)
    }

    mutating func remove(_ key: FactKey, of owner: FactOwner) {
        let place = find(key) ?? add(key, owner, isNew: false)
        guard !changes.entries[place].isNew else {
            changes.entries[place].state = .forgotten
            index.remove(hash(key), UInt32(place))
            count -= 1
            return
        }
        changes.entries[place].state = .removed
        changes.entries[place].order = nextOrder()
    }

    mutating func remove(
        _ table: UInt8, from: UnsafeRawBufferPointer, below: UnsafeRawBufferPointer
    ) {
        let removal = FactChanges.Removal(
            table: table, from: [UInt8](from), below: [UInt8](below), order: nextOrder())
        // What is kept for a while is dropped from its beginning on, again and again.
        if let last = changes.removals.suffix(8).lastIndex(where: { $0.table == table }),
            removal.covers(changes.removals[last])
        {
            changes.removals[last] = removal
        } else {
            changes.removals.append(removal)
        }
    }

    private func find(_ key: FactKey) -> Int? {
        changes.bytes.withUnsafeBytes { bytes in
            index.find(hash(key)) { changes.entries[Int($0)].key(in: bytes) == key }.map { Int($0) }
        }
    }

    private mutating func add(_ key: FactKey, _ owner: FactOwner, isNew: Bool) -> Int {
        let place = changes.entries.count
        changes.entries.append(
            FactChanges.Entry(
                keyOffset: UInt32(changes.bytes.count), keyCount: UInt32(key.bytes.count),
                order: order, table: key.table, owner: owner, state: .stored, isNew: isNew))
        changes.bytes.append(contentsOf: key.bytes)
        index.insert(hash(key), UInt32(place))
        count += 1
        return place
    }

    private func hash(_ key: FactKey) -> UInt64 { hash(key.bytes, salt: UInt64(key.table)) }

    private mutating func nextOrder() -> UInt32 {
        order += 1
        return order
    }
}
