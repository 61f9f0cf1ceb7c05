import Structures

/// A table of names, each with its rules; a name in borrowed bytes is found without an allocation.
struct NameTable: Sendable {
    private var names: [[UInt8]] = []
    private var lists: [AccessRules.ListsByAction] = []
    /// A hash table of indices of names plus 1; 0 is a free slot. The size is a power of two and at
    /// most half is used; empty without names.
    private var slots: [UInt32] = []
    private let keyedHash = KeyedHash(seed: UInt64.random(in: .min ... .max))

    /// `listsOfName` are by name and action.
    init(_ listsOfName: [[UInt8]: AccessRules.ListsByAction]) {
        guard !listsOfName.isEmpty else { return }
        var capacity = 2
        while capacity < 2 * listsOfName.count { capacity *= 2 }
        slots = [UInt32](repeating: 0, count: capacity)
        for (name, list) in listsOfName {
            names.append(name)
            lists.append(list)
            var position = name.withUnsafeBytes { place(of: $0) }
            while slots[position] != 0 { position = (position + 1) & (capacity - 1) }
            slots[position] = UInt32(names.count)
        }
    }

    /// The lists of a name, by action; `nil` without rules for it.
    func find(_ name: UnsafeRawBufferPointer) -> AccessRules.ListsByAction? {
        guard !slots.isEmpty else { return nil }
        var position = place(of: name)
        while slots[position] != 0 {
            let index = Int(slots[position]) - 1
            if names[index].withUnsafeBytes({ $0.elementsAreEqual(to: name) }) {
                return lists[index]
            }
            position = (position + 1) & (slots.count - 1)
        }
        return nil
    }

    private func place(of name: UnsafeRawBufferPointer) -> Int {
        Int(truncatingIfNeeded: keyedHash(name)) & (slots.count - 1)
    }
}
