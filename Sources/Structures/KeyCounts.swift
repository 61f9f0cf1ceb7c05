/// Counts per key, such as connections per address. A key with a count above 0 takes 8 bytes at
/// least, a key with count 0 none.
///
/// Keys are 32 bits of a keyed hash, so that peers cannot choose keys that collide; 0 is not a key.
/// Two peers with equal keys are counted together. The first bits of a key choose one of 64 tables,
/// which grow one by one: with a million keys, one change moves at most some 32,768 of them.
public struct KeyCounts: ~Copyable {
    private static var tableCount: Int { 64 }

    private let tables: UnsafeMutablePointer<CountTable>
    /// Number of keys with a count above 0.
    public private(set) var keyCount = 0

    public init() {
        tables = .allocate(capacity: Self.tableCount)
        for place in 0..<Self.tableCount { (tables + place).initialize(to: CountTable()) }
    }

    deinit {
        for place in 0..<Self.tableCount { tables[place].deallocate() }
        tables.deallocate()
    }

    public subscript(key: UInt32) -> Int { Int(table(of: key).pointee[key]) }

    /// Raises a key's count.
    public mutating func add(_ key: UInt32, _ amount: UInt32 = 1) {
        precondition(key != 0, "0 is no key")
        if table(of: key).pointee.add(key, amount) { keyCount += 1 }
    }

    /// Lowers a key's count, which must be at least `amount`.
    public mutating func remove(_ key: UInt32, _ amount: UInt32 = 1) {
        if table(of: key).pointee.remove(key, amount) { keyCount -= 1 }
    }

    public var allocatedBytes: Int {
        (0..<Self.tableCount).reduce(0) { $0 + tables[$1].allocatedBytes }
    }

    private func table(of key: UInt32) -> UnsafeMutablePointer<CountTable> {
        tables + Int(key >> 26)
    }
}
