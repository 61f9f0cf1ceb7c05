/// Reads what a starting broker needs, streamed in the order of the tables. Memory does not grow
/// with the amount stored, and of queues only the times are read at which messages expire.
extension Database {
    /// Calls `body` for each session, ordered by number.
    public func forEachSession(_ body: (StoredSession) -> Void) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, client_identifier, user_name, attached, since_ms, horizon, end,
                waiting_messages, waiting_bytes, holds_shared, ended
            FROM sessions ORDER BY number
            """, "read")
        while try row.next() {
            body(
                StoredSession(
                    number: row.number(0), clientID: row.bytes(1),
                    userName: row.isNull(2) ? nil : row.bytes(2), isAttached: row.flag(3),
                    detachedSinceMs: row.integer(4), horizon: row.number(5), end: row.number(6),
                    waitingMessages: Int(row.integer(7)), waitingBytes: Int(row.integer(8)),
                    holdsShared: row.flag(9), hasEnded: row.flag(10)))
        }
    }

    /// Calls `body` for each subscription, ordered by session number and filter. The filter is
    /// valid only during the call.
    public func forEachSubscription(
        _ body: (_ session: UInt64, _ filter: UnsafeRawBufferPointer, _ grant: UInt32) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            "SELECT session, filter, qos FROM subscriptions ORDER BY session, filter", "read")
        // No grant is as large as what stands for a number that is none.
        while try row.next() {
            body(row.number(0), row.bytes(1), UInt32(exactly: row.integer(2)) ?? .max)
        }
    }

    /// Calls `body` for each packet identifier of a QoS 2 message that awaits PUBREL, ordered by
    /// session number and identifier; with 0 for a number that is none.
    public func forEachInbound(
        _ body: (_ session: UInt64, _ packetIdentifier: UInt16) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            "SELECT session, packet_identifier FROM inbound ORDER BY session, packet_identifier",
            "read")
        // No packet has the identifier 0, which stands for numbers that none can have.
        while try row.next() { body(row.number(0), UInt16(exactly: row.integer(1)) ?? 0) }
    }

    /// Calls `body` for each queued message that expires and is not released, the first to expire
    /// first; the bytes are those of topic and payload, the time is UNIX time in milliseconds.
    public func forEachExpiry(
        _ body: (
            _ session: UInt64, _ position: UInt64, _ bytes: Int, _ expiresAtMs: Int64
        ) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT session, position, bytes, expires_at_ms FROM queue INDEXED BY queue_expiry
            WHERE expires_at_ms > 0 ORDER BY expires_at_ms
            """, "read")
        while try row.next() {
            body(row.number(0), row.number(1), StoredBounds.bytes(row.integer(2)), row.integer(3))
        }
    }

    /// Calls `body` for each retained message, oldest first.
    public func forEachRetained(_ body: (StoredMessage) -> Void) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT number, published_qos, published_retain, expires_at_ms, messages.topic, payload,
                message_id
            FROM retained CROSS JOIN messages ON number = message ORDER BY message
            """, "read")
        while try row.next() { body(StoredMessage(row, first: 0)) }
    }

    /// Calls `body` for each will, ordered by session number.
    public func forEachWill(
        _ body: (_ session: UInt64, _ message: StoredMessage) -> Void
    ) throws(StoreFailure) {
        let row = try connection.prepare(
            """
            SELECT session, number, published_qos, published_retain, expires_at_ms, topic, payload,
                message_id
            FROM wills CROSS JOIN messages ON number = message ORDER BY session
            """, "read")
        while try row.next() { body(row.number(0), StoredMessage(row, first: 1)) }
    }
}
