import CSQLite

/// The values of one row, as a page holds them.
struct StoredRow {
    enum Value: SQLiteBindable {
        case nothing
        case integer(Int64)
        /// A blob, or the bytes of a text.
        case bytes([UInt8])

        func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
            switch self {
            case .nothing: sqlite3_bind_null(statement, index)
            case .integer(let number): number.bind(to: statement, at: index)
            case .bytes(let bytes): bytes.bind(to: statement, at: index)
            }
        }
    }

    var values: [Value] = []

    /// `number` is that of the row, in a table that has these; a first column that is left out stands
    /// for it.
    /// `nil` for bytes that are no row of ours.
    init?(_ bytes: [UInt8], number: Int64?) {
        var place = 0
        guard let headerSize = bytes.varint(at: &place), headerSize <= UInt64(bytes.count) else {
            return nil
        }
        var content = Int(headerSize)
        while place < Int(headerSize) {
            guard let type = bytes.varint(at: &place),
                let value = Self.value(type, bytes, &content)
            else { return nil }
            values.append(value)
        }
        if let number, case .nothing? = values.first { values[0] = .integer(number) }
    }

    /// The value of a serial type (section 2.1 of the format). There are no fractions.
    private static func value(_ type: UInt64, _ bytes: [UInt8], _ place: inout Int) -> Value? {
        let size: Int
        switch type {
        case 0: return .nothing
        case 8, 9: return .integer(Int64(type) - 8)
        case 1...4: size = Int(type)
        case 5: size = 6
        case 6: size = 8
        case 12...UInt64(2 * bytes.count + 13): size = Int(type - 12) / 2
        default: return nil
        }
        guard place + size <= bytes.count else { return nil }
        defer { place += size }
        guard type < 12 else { return .bytes(Array(bytes[place..<place + size])) }
        guard let number = bytes.number(at: place, bytes: size) else { return nil }
        let shift = 64 - 8 * UInt64(size)
        return .integer(Int64(bitPattern: number << shift) >> Int64(shift))
    }
}
