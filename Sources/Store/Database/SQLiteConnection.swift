import CCheckedPages
import CSQLite

/// Sole owner of a connection to one SQLite file. Belongs to one thread at a time.
struct SQLiteConnection: ~Copyable {
    enum Access {
        case readOnly
        case readWrite
    }

    /// Milliseconds that a statement waits for another connection's lock.
    static let patienceMs: Int32 = 5_000

    /// The path of the file, with symbolic links resolved.
    let path: String
    /// For SQLite calls that have no wrapper here; the connection stays the owner.
    let handle: OpaquePointer

    private init(path: String, adopting handle: OpaquePointer) {
        self.path = path
        self.handle = handle
    }

    /// Opens a file. Its path must contain no symbolic link. The page cache takes at most
    /// `cacheBytes`.
    static func open(
        _ path: String, _ access: Access, cacheBytes: Int
    ) throws(StoreFailure) -> SQLiteConnection {
        let mode =
            switch access {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            }
        guard let layer = hermes_checked_pages() else {
            throw StoreFailure(
                operation: "open", path: path, sqliteCode: SQLITE_NOMEM, reason: "out of memory")
        }
        var handle: OpaquePointer?
        // One thread at a time uses the connection, so that SQLite need not lock it.
        let code = sqlite3_open_v2(
            path, &handle, mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, layer)
        guard let handle else {
            throw StoreFailure(
                operation: "open", path: path, sqliteCode: SQLITE_NOMEM, reason: "out of memory")
        }
        let connection = SQLiteConnection(path: path, adopting: handle)
        guard code == SQLITE_OK else { throw connection.failure("open") }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, patienceMs)
        // Sizes in a damaged page are checked before use, and functions that a damaged or planted
        // schema names are not run.
        try connection.execute(
            """
            PRAGMA cache_size = -\(cacheBytes / 1_024);
            PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF
            """, "open")
        return connection
    }

    /// Statements that are still alive keep the file open until they are freed.
    deinit { sqlite3_close_v2(handle) }

    func prepare(
        _ sql: String, _ operation: StaticString
    ) throws(StoreFailure) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(
            handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw failure("\(operation)") }
        return SQLiteStatement(adopting: statement, operation: operation)
    }

    /// Runs statements without parameters; rows are not read.
    func execute(_ sql: String, _ operation: StaticString) throws(StoreFailure) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
            throw failure("\(operation)")
        }
    }

    /// Runs a query and returns the first column of the first row; 0 without a row.
    func number(_ sql: String, _ operation: StaticString) throws(StoreFailure) -> Int64 {
        let statement = try prepare(sql, operation)
        guard try statement.next() else { return 0 }
        return statement.integer(0)
    }

    /// Runs `body` in a transaction that is rolled back if it throws.
    func transaction(
        _ body: () throws(StoreFailure) -> Void
    ) throws(StoreFailure) {
        try execute("BEGIN IMMEDIATE", "write")
        do {
            try body()
            try execute("COMMIT", "write")
        } catch {
            // On a full disk or after a failed write SQLite may already have rolled back.
            if sqlite3_get_autocommit(handle) == 0 {
                sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            }
            throw error
        }
    }

    /// True when each page of the file has its checksums.
    var isSealed: Bool {
        control(Int32(hermes_control_is_sealed), 0) != 0
    }

    /// Reserves room for the checksums in all pages that are written from now on. A file that has
    /// pages must be rewritten as a whole.
    func reserveChecksums() {
        control(SQLITE_FCNTL_RESERVE_BYTES, Int32(hermes_page_reserved))
        control(Int32(hermes_control_rewrites), 0)
    }

    /// Hands a number to the access layer of the file, and returns the number that it leaves there.
    @discardableResult
    private func control(_ operation: Int32, _ argument: Int32) -> Int32 {
        var number = argument
        sqlite3_file_control(handle, "main", operation, &number)
        return number
    }

    /// The failure of this connection's last call.
    func failure(_ operation: String) -> StoreFailure {
        StoreFailure(operation: operation, path: path, connection: handle)
    }
}
