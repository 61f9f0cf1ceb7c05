/// The prepared statements that write tags and pushes.
struct PushWriter: ~Copyable {
    let insertTag: SQLiteStatement
    let deleteTag: SQLiteStatement
    let insert: SQLiteStatement
    let advance: SQLiteStatement
    let clear: SQLiteStatement
    let delete: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> PushWriter {
        PushWriter(
            insertTag: try connection.prepare(
                "INSERT OR REPLACE INTO tags VALUES (?1, ?2)", "write"),
            deleteTag: try connection.prepare(
                "DELETE FROM tags WHERE client_identifier = ?1 AND tag = ?2", "write"),
            insert: try connection.prepare(
                """
                INSERT OR REPLACE INTO pushes VALUES
                (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0)
                """, "write"),
            advance: try connection.prepare(
                """
                UPDATE pushes SET state = ?2, cursor = ?3, matched = ?4, reached = ?5, online = ?6,
                queued = ?7, dropped = ?8, without_session = ?9, denied = ?10, began_ms = ?11,
                ended_ms = ?12
                WHERE number = ?1
                """, "write"),
            clear: try connection.prepare(
                "UPDATE pushes SET payload = x'', target = x'' WHERE number = ?1", "write"),
            delete: try connection.prepare("DELETE FROM pushes WHERE number = ?1", "write"))
    }

    func write(_ changes: TagChanges) throws(StoreFailure) {
        for (tag, isSet) in changes.isSet {
            if isSet {
                try insertTag.run(tag.clientIdentifier, tag.tag)
            } else {
                try deleteTag.run(tag.clientIdentifier, tag.tag)
            }
        }
    }

    func write(_ changes: PushChanges) throws(StoreFailure) {
        for push in changes.added {
            try insert.run(
                push.number, push.createdMs, push.dueMs, push.expiresInMs, push.spreadMs,
                push.pushID, push.topic, push.payload, push.qos, push.isFollowed, push.target,
                push.seed)
        }
        for progress in changes.progress.values {
            try advance.run(
                progress.number, progress.state, progress.cursor, progress.matched,
                progress.reached, progress.online, progress.queued, progress.dropped,
                progress.withoutSession, progress.denied, progress.beganMs,
                progress.endedMs)
            if progress.endedMs != 0 { try clear.run(progress.number) }
        }
        for number in changes.removed { try delete.run(number) }
    }
}

extension Database {
    /// Calls `body` for each tag of each client.
    public func forEachTag(_ body: (StoredTag) -> Void) throws(StoreFailure) {
        let row = try connection.prepare("SELECT client_identifier, tag FROM tags", "read")
        while try row.next() {
            body(StoredTag(clientIdentifier: [UInt8](row.bytes(0)), tag: [UInt8](row.bytes(1))))
        }
    }

    /// Calls `body` for each push, ordered by number.
    public func forEachPush(_ body: (StoredPush) -> Void) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, created_ms, due_ms, expires_in_ms, spread_ms, push_id, topic, payload,
            qos, receipt, target, seed, state, cursor, matched, reached, online, queued, dropped,
            without_session, denied, began_ms, ended_ms FROM pushes ORDER BY number
            """, "read")
        while try row.next() {
            var push = StoredPush(
                number: row.number(0), createdMs: row.integer(1), dueMs: row.integer(2),
                expiresInMs: row.integer(3), spreadMs: row.integer(4),
                pushID: [UInt8](row.bytes(5)), topic: [UInt8](row.bytes(6)),
                payload: [UInt8](row.bytes(7)), qos: row.byte(8), isFollowed: row.flag(9),
                target: [UInt8](row.bytes(10)), seed: row.number(11))
            push.progress.state = row.byte(12)
            push.progress.cursor = row.number(13)
            push.progress.matched = row.count(14)
            push.progress.reached = row.count(15)
            push.progress.online = row.count(16)
            push.progress.queued = row.count(17)
            push.progress.dropped = row.count(18)
            push.progress.withoutSession = row.count(19)
            push.progress.denied = row.count(20)
            push.progress.beganMs = row.integer(21)
            push.progress.endedMs = row.integer(22)
            body(push)
        }
    }
}
