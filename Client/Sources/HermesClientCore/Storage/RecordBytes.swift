/// The encoding of stored fields: integers with the least significant byte first, byte strings
/// behind their length of four bytes.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append<Value: FixedWidthInteger>(_ value: Value) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    mutating func append(_ string: [UInt8]) {
        append(UInt32(truncatingIfNeeded: string.count))
        bytes.append(contentsOf: string)
    }
}

/// Reads what ``RecordWriter`` wrote; `nil` where the bytes end too early.
struct RecordFields {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type = Value.self) -> Value? {
        let size = MemoryLayout<Value>.size
        guard rest.count >= size else { return nil }
        var value: Value = 0
        for (index, byte) in rest.prefix(size).enumerated() {
            value |= Value(truncatingIfNeeded: byte) << (8 * index)
        }
        rest = rest.dropFirst(size)
        return value
    }

    mutating func flag() -> Bool? {
        guard let byte = integer(UInt8.self), byte <= 1 else { return nil }
        return byte == 1
    }

    mutating func string() -> [UInt8]? {
        guard let count = integer(UInt32.self), rest.count >= Int(count) else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return Array(rest.prefix(Int(count)))
    }
}
