/// The prepared statements that write a segment's changes.
///
/// They live as long as the connection: preparing a statement costs more than running it.
struct SegmentWriter: ~Copyable {
    let insertSession: SQLiteStatement
    let updateSession: SQLiteStatement
    let addToSession: SQLiteStatement
    let endSession: SQLiteStatement
    let deleteSession: SQLiteStatement
    let upsertSubscription: SQLiteStatement
    let deleteSubscription: SQLiteStatement
    let deleteSubscriptions: SQLiteStatement
    let insertMessage: SQLiteStatement
    let deleteMessage: SQLiteStatement
    let subtractReferences: SQLiteStatement
    let insertQueued: SQLiteStatement
    let selectQueued: SQLiteStatement
    let releaseQueued: SQLiteStatement
    let deleteQueued: SQLiteStatement
    let insertInbound: SQLiteStatement
    let deleteInbound: SQLiteStatement
    let deleteAllInbound: SQLiteStatement
    let insertRetained: SQLiteStatement
    let deleteRetained: SQLiteStatement
    let insertWill: SQLiteStatement
    let deleteWill: SQLiteStatement
    let updateMeta: SQLiteStatement

    static func prepare(
        on connection: borrowing SQLiteConnection
    ) throws(StoreFailure) -> SegmentWriter {
        let range = "WHERE session = ?1 AND position BETWEEN ?2 AND ?3"
        return SegmentWriter(
            insertSession: try connection.prepare(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0, 0, 0)", "write"),
            updateSession: try connection.prepare(
                """
                UPDATE sessions SET attached = coalesce(?2, attached), since_ms = coalesce(?3, since_ms),
                    horizon = coalesce(?4, horizon), end = coalesce(?5, end)
                WHERE number = ?1
                """, "write"),
            addToSession: try connection.prepare(
                """
                UPDATE sessions SET waiting_messages = waiting_messages + ?2,
                    waiting_bytes = waiting_bytes + ?3,
                    holds_shared = waiting_messages + ?2 > 0 AND (holds_shared OR ?4)
                WHERE number = ?1
                """, "write"),
            endSession: try connection.prepare(
                "UPDATE sessions SET ended = 1, attached = 0 WHERE number = ?1", "write"),
            deleteSession: try connection.prepare(
                "DELETE FROM sessions WHERE number = ?1", "write"),
            upsertSubscription: try connection.prepare(
                """
                INSERT INTO subscriptions VALUES (?1, ?2, ?3)
                ON CONFLICT DO UPDATE SET qos = excluded.qos
                """, "write"),
            deleteSubscription: try connection.prepare(
                "DELETE FROM subscriptions WHERE session = ?1 AND filter = ?2", "write"),
            deleteSubscriptions: try connection.prepare(
                "DELETE FROM subscriptions WHERE session = ?1", "write"),
            insertMessage: try connection.prepare(
                "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", "write"),
            deleteMessage: try connection.prepare(
                "DELETE FROM messages WHERE number = ?1 AND reference_count <= ?2", "write"),
            subtractReferences: try connection.prepare(
                "UPDATE messages SET reference_count = reference_count - ?2 WHERE number = ?1",
                "write"),
            insertQueued: try connection.prepare(
                """
                INSERT INTO queue
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
                """, "write"),
            selectQueued: try connection.prepare(
                "SELECT bytes, shared, message, qos FROM queue \(range)", "write"),
            releaseQueued: try connection.prepare(
                """
                UPDATE queue SET released = 1, shared = 0, bytes = 0, published_qos = NULL,
                    published_retain = NULL, expires_at_ms = NULL, topic = NULL, payload = NULL,
                    message_id = NULL
                \(range) AND released = 0 AND qos = 2
                """, "write"),
            deleteQueued: try connection.prepare(
                "DELETE FROM queue \(range)", "write"),
            insertInbound: try connection.prepare(
                "INSERT INTO inbound VALUES (?1, ?2) ON CONFLICT DO NOTHING", "write"),
            deleteInbound: try connection.prepare(
                "DELETE FROM inbound WHERE session = ?1 AND packet_identifier = ?2", "write"),
            deleteAllInbound: try connection.prepare(
                "DELETE FROM inbound WHERE session = ?1", "write"),
            insertRetained: try connection.prepare(
                "INSERT INTO retained VALUES (?1, ?2)", "write"),
            deleteRetained: try connection.prepare(
                "DELETE FROM retained WHERE topic = ?1 RETURNING message", "write"),
            insertWill: try connection.prepare(
                "INSERT INTO wills VALUES (?1, ?2)", "write"),
            deleteWill: try connection.prepare(
                "DELETE FROM wills WHERE session = ?1 RETURNING message", "write"),
            updateMeta: try connection.prepare(
                """
                UPDATE meta SET value = CASE name WHEN 'applied_segment' THEN ?1
                    WHEN 'last_session' THEN max(value, ?2)
                    WHEN 'last_message' THEN max(value, ?3) ELSE value END
                """, "write"))
    }
}
