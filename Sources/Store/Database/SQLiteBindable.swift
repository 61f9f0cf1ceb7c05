import CSQLite

/// A value that can be bound to a parameter of a statement.
protocol SQLiteBindable {
    /// Binds the value to a parameter, counted from 1, and returns SQLite's result code.
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32
}

extension Int64: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, self)
    }
}

/// Numbers of sessions, messages and positions count from 1 and never reach 2^63. The bound of a
/// range may, and then means no bound.
extension UInt64: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, Int64(clamping: self))
    }
}

extension UInt32: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, Int64(self))
    }
}

extension UInt16: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, Int64(self))
    }
}

extension UInt8: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, Int64(self))
    }
}

extension Bool: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_int64(statement, index, self ? 1 : 0)
    }
}

/// A blob; SQLite keeps a copy of it.
extension [UInt8]: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        withUnsafeBytes {
            hermes_sqlite_bind_copied(statement, index, $0.baseAddress, UInt64($0.count))
        }
    }
}

/// `nil` is bound as NULL.
extension Optional: SQLiteBindable where Wrapped: SQLiteBindable {
    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        guard let value = self else { return sqlite3_bind_null(statement, index) }
        return value.bind(to: statement, at: index)
    }
}

/// A blob that SQLite does not copy. The bytes must stay valid until the statement has run to its
/// end.
struct BorrowedBlob: SQLiteBindable {
    let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        hermes_sqlite_bind_borrowed(statement, index, bytes.baseAddress, UInt64(bytes.count))
    }
}

/// A blob of zeroes, to be filled later; takes no memory.
struct ZeroBlob: SQLiteBindable {
    let count: Int

    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        sqlite3_bind_zeroblob64(statement, index, UInt64(count))
    }
}
