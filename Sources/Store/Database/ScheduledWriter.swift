/// The prepared statements that write scheduled messages.
struct ScheduledWriter: ~Copyable {
    let insert: SQLiteStatement
    let move: SQLiteStatement
    let delete: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> ScheduledWriter {
        ScheduledWriter(
            insert: try connection.prepare(
                "INSERT OR REPLACE INTO scheduled VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                "write"),
            move: try connection.prepare(
                "UPDATE scheduled SET due_ms = ?2 WHERE number = ?1", "write"),
            delete: try connection.prepare("DELETE FROM scheduled WHERE number = ?1", "write"))
    }

    func write(_ changes: ScheduledChanges) throws(StoreFailure) {
        for message in changes.added {
            try insert.run(
                message.number, message.dueMs, message.expiresInMs, message.messageID,
                message.topic, message.payload, message.qos, message.retain, message.isFollowed)
        }
        for (number, dueMs) in changes.moved { try move.run(number, dueMs) }
        for number in changes.ended { try delete.run(number) }
    }
}

extension Database {
    /// Calls `body` for each scheduled message, ordered by number.
    public func forEachScheduled(
        _ body: (StoredScheduled) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, due_ms, expires_in_ms, message_id, topic, payload, qos, retain, receipt
            FROM scheduled ORDER BY number
            """, "read")
        while try row.next() {
            body(
                StoredScheduled(
                    number: row.number(0), dueMs: Int64(bitPattern: row.number(1)),
                    expiresInMs: Int64(bitPattern: row.number(2)),
                    messageID: [UInt8](row.bytes(3)), topic: [UInt8](row.bytes(4)),
                    payload: [UInt8](row.bytes(5)), qos: row.byte(6), retain: row.byte(7) != 0,
                    isFollowed: row.byte(8) != 0))
        }
    }
}
