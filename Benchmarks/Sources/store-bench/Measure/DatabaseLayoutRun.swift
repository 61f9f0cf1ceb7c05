import CSQLite

/// The stay of messages in bare tables of one layout: in, read, out, and the space back.
final class DatabaseLayoutRun {
    enum Layout: Int, CaseIterable {
        case inline = 1
        case byMessageNumber
        case byArrival
    }

    private let database: OpaquePointer
    private let layout: Layout
    private let pageBytes: Int
    private let sessions: Int
    private let messages: Int
    private var ends: [Int64]
    private var nextContent: Int64 = 1
    private var logBytes = 0
    private let payload = [UInt8](repeating: 120, count: 200)
    private static let segmentMessages = 50_000

    init(
        directory: String, layout: Layout, pageBytes: Int, sessions: Int, messages: Int
    ) throws(BenchFailure) {
        var handle: OpaquePointer?
        guard sqlite3_open(directory + "/layout.sqlite", &handle) == SQLITE_OK, let handle else {
            throw BenchFailure("SQLite cannot open a file in \(Text.visible(directory))")
        }
        database = handle
        self.layout = layout
        self.pageBytes = pageBytes
        self.sessions = sessions
        self.messages = messages
        ends = [Int64](repeating: 1, count: sessions)
        try execute(
            """
            PRAGMA page_size = \(pageBytes); PRAGMA auto_vacuum = INCREMENTAL;
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
            PRAGMA cache_size = -16384; PRAGMA secure_delete = FAST
            """)
        let content =
            "published_qos INTEGER, published_retain INTEGER, expires_at_ms INTEGER, topic BLOB, "
            + "payload BLOB"
        let key =
            "session INTEGER, position INTEGER, message INTEGER, bytes INTEGER, qos INTEGER, "
            + "retain INTEGER, released INTEGER, shared INTEGER"
        switch layout {
        case .inline:
            try execute(
                "CREATE TABLE queue (\(key), \(content), PRIMARY KEY (session, position)) "
                    + "WITHOUT ROWID")
        case .byMessageNumber, .byArrival:
            try execute(
                """
                CREATE TABLE queue (\(key), PRIMARY KEY (session, position)) WITHOUT ROWID;
                CREATE TABLE messages (number INTEGER PRIMARY KEY, reference_count INTEGER,
                    \(content))
                """)
        }
    }

    deinit { sqlite3_close_v2(database) }

    /// One row of figures.
    func measure() throws(BenchFailure) -> [Double?] {
        let fill = try timed(fill)
        let fillLogBytes = logBytes
        let read = try timed(readAll)
        let drain = try timed(drain)
        let reclaim = try timed { () throws(BenchFailure) in
            try execute("PRAGMA incremental_vacuum")
            try checkpoint()
        }
        return [
            Double(layout.rawValue), Double(pageBytes), Double(sessions), fill, read, drain,
            reclaim, fill + read + drain + reclaim, Double(fillLogBytes) / Double(messages),
        ]
    }

    /// CPU microseconds per message.
    private func timed(_ body: () throws(BenchFailure) -> Void) throws(BenchFailure) -> Double {
        let start = CPUTime.now()
        try body()
        return Double((CPUTime.now() - start).total) / Double(messages) / 1e3
    }

    private func fill() throws(BenchFailure) {
        let queue = try prepare(
            layout == .inline
                ? "INSERT INTO queue VALUES (?, ?, ?, ?, 1, 0, 0, 0, 1, 0, 0, ?, ?)"
                : "INSERT INTO queue VALUES (?, ?, ?, ?, 1, 0, 0, 1)")
        let content = try prepare(
            layout == .inline
                ? "SELECT 1" : "INSERT INTO messages VALUES (?, 1, 1, 0, 0, ?, ?)")
        defer {
            sqlite3_finalize(queue)
            sqlite3_finalize(content)
        }
        for first in stride(from: 0, to: messages, by: Self.segmentMessages) {
            let segment = first..<min(first + Self.segmentMessages, messages)
            try execute("BEGIN")
            if layout == .byMessageNumber {
                for number in segment { try insert(content, key: Int64(number), number) }
            }
            for session in 0..<min(sessions, messages) {
                // The messages of the segment that fall to this session in turn.
                let offset = ((session - segment.lowerBound) % sessions + sessions) % sessions
                for number in stride(
                    from: segment.lowerBound + offset, to: segment.upperBound, by: sessions)
                {
                    var key = Int64(number)
                    if layout == .byArrival {
                        key = nextContent
                        nextContent += 1
                        try insert(content, key: key, number)
                    }
                    sqlite3_bind_int64(queue, 1, Int64(session))
                    sqlite3_bind_int64(queue, 2, ends[session])
                    ends[session] += 1
                    sqlite3_bind_int64(queue, 3, key)
                    sqlite3_bind_int64(queue, 4, 220)
                    if layout == .inline { bindContent(queue, 5, number) }
                    try run(queue)
                }
            }
            try execute("COMMIT")
            try checkpoint()
        }
    }

    private func insert(
        _ statement: OpaquePointer, key: Int64, _ number: Int
    ) throws(BenchFailure) {
        sqlite3_bind_int64(statement, 1, key)
        bindContent(statement, 2, number)
        try run(statement)
    }

    private func bindContent(_ statement: OpaquePointer, _ index: Int32, _ number: Int) {
        let topic = Array("orders/s-\(number % 10_000)/o-\(number)/status".utf8)
        hermes_sqlite_bind_copied(statement, index, topic, UInt64(topic.count))
        hermes_sqlite_bind_copied(statement, index + 1, payload, UInt64(payload.count))
    }

    private func readAll() throws(BenchFailure) {
        let rows = try prepare(
            layout == .inline
                ? "SELECT position, topic, payload FROM queue WHERE session = ? ORDER BY position"
                : """
                SELECT position, topic, payload FROM queue CROSS JOIN messages ON number = message
                WHERE session = ? ORDER BY position
                """)
        defer { sqlite3_finalize(rows) }
        var count = 0
        for session in 0..<sessions {
            sqlite3_bind_int64(rows, 1, Int64(session))
            while sqlite3_step(rows) == SQLITE_ROW {
                count += sqlite3_column_blob(rows, 2) == nil ? 0 : 1
            }
            sqlite3_reset(rows)
        }
        guard count == messages else {
            throw BenchFailure("\(messages) messages went in, \(count) came out")
        }
    }

    private func drain() throws(BenchFailure) {
        let rows = try prepare("SELECT message, bytes FROM queue WHERE session = ?")
        let delete = try prepare("DELETE FROM queue WHERE session = ?")
        let deleteContent = try prepare(
            layout == .inline ? "SELECT 1" : "DELETE FROM messages WHERE number = ?")
        defer {
            sqlite3_finalize(rows)
            sqlite3_finalize(delete)
            sqlite3_finalize(deleteContent)
        }
        let order = (0..<sessions).shuffled()
        let parts = max(1, messages / Self.segmentMessages)
        for part in 0..<parts {
            try execute("BEGIN")
            var content: [Int64] = []
            for session in order[sessions * part / parts..<sessions * (part + 1) / parts].sorted() {
                sqlite3_bind_int64(rows, 1, Int64(session))
                while sqlite3_step(rows) == SQLITE_ROW {
                    let number = sqlite3_column_int64(rows, 0)
                    if layout != .inline { content.append(number) }
                }
                sqlite3_reset(rows)
                sqlite3_bind_int64(delete, 1, Int64(session))
                try run(delete)
            }
            for number in content.sorted() {
                sqlite3_bind_int64(deleteContent, 1, number)
                try run(deleteContent)
            }
            try execute("COMMIT")
            try checkpoint()
        }
    }

    private func checkpoint() throws(BenchFailure) {
        var frames: Int32 = 0
        guard
            sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_PASSIVE, &frames, nil)
                == SQLITE_OK
        else { throw failure }
        logBytes += Int(frames) * pageBytes
    }

    private func prepare(_ sql: String) throws(BenchFailure) -> OpaquePointer {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK,
            let statement
        else { throw failure }
        return statement
    }

    private func run(_ statement: OpaquePointer) throws(BenchFailure) {
        guard sqlite3_step(statement) == SQLITE_DONE else { throw failure }
        sqlite3_reset(statement)
    }

    private func execute(_ sql: String) throws(BenchFailure) {
        guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else { throw failure }
    }

    private var failure: BenchFailure {
        BenchFailure("SQLite: \(sqlite3_errmsg(database).map { String(cString: $0) } ?? "failed")")
    }
}
