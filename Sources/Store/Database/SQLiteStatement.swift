import CSQLite

/// Sole owner of a prepared statement. Belongs to its connection's thread.
///
/// As in SQLite, parameters count from 1 and columns from 0. A statement keeps its bound values,
/// but every run binds all parameters again, so that a ``BorrowedBlob`` of an earlier run is never
/// read.
struct SQLiteStatement: ~Copyable {
    private let handle: OpaquePointer
    /// The verb that stands after "cannot" in an error about this statement.
    private let operation: StaticString

    init(adopting handle: OpaquePointer, operation: StaticString) {
        self.handle = handle
        self.operation = operation
    }

    deinit { sqlite3_finalize(handle) }

    // MARK: Parameters

    /// Binds all parameters, in order.
    func bind<each Value: SQLiteBindable>(_ values: repeat each Value) {
        var index: Int32 = 1
        for value in repeat each values {
            bind(value, at: index)
            index += 1
        }
    }

    func bind(_ value: some SQLiteBindable, at index: Int32) {
        let code = value.bind(to: handle, at: index)
        // Any other code means a wrong index, a statement in use, or a lack of memory.
        precondition(code == SQLITE_OK, "parameter \(index) of a statement: SQLite code \(code)")
    }

    // MARK: Running

    /// Steps to the next row. `false` at the end, where the statement is ready for its next run.
    func next() throws(StoreFailure) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE:
            reset()
            return false
        default:
            let failure = failure()
            reset()
            throw failure
        }
    }

    /// Runs the statement to its end; rows are not read.
    func run() throws(StoreFailure) {
        while try next() {}
    }

    /// Binds all parameters and runs the statement to its end; rows are not read.
    func run<each Value: SQLiteBindable>(_ values: repeat each Value) throws(StoreFailure) {
        bind(repeat each values)
        try run()
    }

    /// Runs to the end and returns the first column of the first row; `nil` if there is no row.
    func firstNumber<each Value: SQLiteBindable>(
        _ values: repeat each Value
    ) throws(StoreFailure) -> UInt64? {
        bind(repeat each values)
        var number: UInt64?
        while try next() { if number == nil { number = self.number(0) } }
        return number
    }

    /// Ends a run before its last row. A failure of an earlier step is not reported again.
    func reset() { sqlite3_reset(handle) }

    /// Number of rows that the last run inserted, updated or deleted.
    var changedRows: Int { Int(sqlite3_changes(sqlite3_db_handle(handle))) }

    private func failure() -> StoreFailure {
        let connection = sqlite3_db_handle(handle)
        guard let connection else { preconditionFailure("a statement without a connection") }
        let path = sqlite3_db_filename(connection, "main").map { String(cString: $0) } ?? ""
        return StoreFailure(operation: "\(operation)", path: path, connection: connection)
    }

    // MARK: Columns

    /// Number of columns of a row.
    var columns: Int32 { sqlite3_column_count(handle) }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// A number that was stored as `UInt64`. A negative value in a damaged file becomes 0, which is
    /// never assigned.
    func number(_ column: Int32) -> UInt64 {
        UInt64(clamping: sqlite3_column_int64(handle, column))
    }

    /// A number that was stored as `UInt8`. A value outside its range in a damaged file becomes the
    /// nearest valid one.
    func byte(_ column: Int32) -> UInt8 { UInt8(clamping: sqlite3_column_int64(handle, column)) }

    /// A number that was stored as `UInt32`. A value outside its range in a damaged file becomes the
    /// nearest valid one.
    func count(_ column: Int32) -> UInt32 {
        UInt32(clamping: sqlite3_column_int64(handle, column))
    }

    /// A number that was stored as `UInt128`; 0 for bytes of another size in a damaged file.
    func wideNumber(_ column: Int32) -> UInt128 {
        let bytes = bytes(column)
        guard bytes.count == MemoryLayout<UInt128>.size else { return 0 }
        return UInt128(bigEndian: bytes.loadUnaligned(as: UInt128.self))
    }

    func flag(_ column: Int32) -> Bool { sqlite3_column_int64(handle, column) != 0 }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// The bytes of a column, empty for NULL. Valid until the next step or reset.
    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(
            start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    /// A column as text; invalid UTF-8 is repaired.
    func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }
}
