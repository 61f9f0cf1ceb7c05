import Glibc

/// Table and key of a fact. The bytes belong to somebody else.
struct FactKey {
    let table: UInt8
    let bytes: UnsafeRawBufferPointer

    init(_ table: UInt8, _ bytes: UnsafeRawBufferPointer) {
        self.table = table
        self.bytes = bytes
    }

    /// The order of the database: by table, then byte by byte.
    static func < (one: FactKey, other: FactKey) -> Bool { one.compare(other) < 0 }
    static func == (one: FactKey, other: FactKey) -> Bool { one.compare(other) == 0 }

    private func compare(_ other: FactKey) -> Int {
        guard table == other.table else { return Int(table) - Int(other.table) }
        let common = min(bytes.count, other.bytes.count)
        if common > 0, let mine = bytes.baseAddress, let theirs = other.bytes.baseAddress {
            let order = memcmp(mine, theirs, common)
            if order != 0 { return Int(order) }
        }
        return bytes.count - other.bytes.count
    }
}
