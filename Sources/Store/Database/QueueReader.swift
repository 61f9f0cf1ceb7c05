/// Reads parts of queues while the mover writes. It has a read-only connection of its own and
/// belongs to one thread at a time.
///
/// Each read sees the state that was committed when it began.
public final class QueueReader {
    /// The result of a read.
    public struct Window: Sendable, Hashable {
        /// Number of queue rows that were appended to the batch.
        public var messages = 0
        /// Bytes of their topics and payloads.
        public var bytes = 0
        /// The position from which the next read begins.
        public var next: UInt64
        /// True when the database has a row at `next`, below the requested bound.
        public var hasMore = false
        /// The first row that was left out, because it holds what no broker writes.
        public var damage: StoreFailure?
    }

    private let connection: SQLiteConnection
    private let rows: SQLiteStatement
    private let sharedMessage: SQLiteStatement

    /// Size of the page cache in bytes: enough for the inner pages of the tables; content is read
    /// only once.
    private static let cacheBytes = 2 * 1_024 * 1_024

    /// Skipping this many rows takes as long as searching for one.
    private static let rowsPerSearch: UInt64 = 16

    /// Opens the database of a data directory. Its ``Database`` must have been opened before.
    public init(directory: String) throws(StoreFailure) {
        let connection = try SQLiteConnection.open(
            DatabaseFile.path(in: directory), .readOnly, cacheBytes: Self.cacheBytes)
        rows = try connection.prepare(
            """
            SELECT position, message, bytes, qos, retain, released, shared, message, published_qos,
                published_retain, expires_at_ms, topic, payload, message_id, shared_filter
            FROM queue WHERE session = ?1 AND position >= ?2 AND position < ?3 ORDER BY position
            """, "read")
        sharedMessage = try connection.prepare(
            """
            SELECT number, published_qos, published_retain, expires_at_ms, topic, payload,
                message_id
            FROM messages WHERE number = ?1
            """, "read")
        self.connection = connection
    }

    /// Appends a part of a session's queue to a batch, in the order of positions.
    ///
    /// A row becomes the records `message`, `named` if it has an identifier, `queued`, and `shared`
    /// if a shared subscription chose the session. A released row has an empty topic and payload, and
    /// `released` follows it. The read ends before `maxMessages` or `maxBytes` would be exceeded,
    /// but never before its first row, so that repeated reads always advance. `isInWindow` is
    /// always false: the session's horizon tells which positions may have been sent.
    /// - Parameters:
    ///   - session: the session's number.
    ///   - from: the first position to read.
    ///   - below: the position before which the read ends.
    ///   - finished: ranges of positions to leave out, because they are done although the database
    ///     has them; rising, without overlaps.
    ///   - maxMessages: at least 1.
    ///   - maxBytes: bytes of topics and payloads.
    ///   - batch: must be recording; no group is ended.
    /// - Returns: the number of rows and bytes, and where to continue.
    /// - Throws: ``StoreFailure``; rows that were already appended are complete.
    public func read(
        session: UInt64, from: UInt64, below: UInt64, without finished: [ClosedRange<UInt64>] = [],
        maxMessages: Int, maxBytes: Int, into batch: inout WriteBatch
    ) throws(StoreFailure) -> Window {
        var window = Window(next: below)
        var finished = finished[...]
        rows.bind(session, from, below)
        // A read that ends early leaves the statement between rows, and its snapshot open.
        defer { rows.reset() }
        while try rows.next() {
            let position = rows.number(0)
            while let first = finished.first, first.upperBound < position { finished.removeFirst() }
            if let done = finished.first, done.contains(position) {
                if done.upperBound - position >= Self.rowsPerSearch {
                    // A commit in between may remove skipped rows, and adds none below this
                    // position.
                    rows.reset()
                    rows.bind(session, done.upperBound, below)
                }
                continue
            }
            let bytes = StoredBounds.bytes(rows.integer(2))
            guard
                window.messages == 0
                    || (window.messages < maxMessages && window.bytes + bytes <= maxBytes)
            else {
                window.next = position
                window.hasMore = true
                return window
            }
            guard try append(session, position, to: &batch) else {
                window.damage = window.damage ?? damage(session, position)
                continue
            }
            window.messages += 1
            window.bytes += bytes
        }
        return window
    }

    private func damage(_ session: UInt64, _ position: UInt64) -> StoreFailure {
        StoreFailure(
            operation: "read", path: connection.path,
            reason: "position \(position) of session \(session) holds what no broker writes",
            kind: .damaged, cure: "The rest of the queue is delivered; the message is lost.")
    }

    /// Appends the records of the current row of ``rows``; false when they are none.
    private func append(
        _ session: UInt64, _ position: UInt64, to batch: inout WriteBatch
    ) throws(StoreFailure) -> Bool {
        let (isReleased, isShared) = (rows.flag(5), !rows.isNull(14))
        guard !isShared || StoredBounds.isText(rows.bytes(14)) else { return false }
        let number = rows.number(1)
        if rows.flag(6) {
            sharedMessage.bind(number)
            defer { sharedMessage.reset() }
            guard try sharedMessage.next() else {
                throw StoreFailure(
                    operation: "read", path: connection.path,
                    reason: "message \(number), which waits for session \(session), is not in it",
                    kind: .damaged, cure: "Run `hermesctl store check`, or start on a backup.")
            }
            let message = StoredMessage(sharedMessage, first: 0)
            guard message.isSound else { return false }
            append(message, to: &batch)
        } else {
            let message = StoredMessage(rows, first: 7)
            guard message.isSound || isReleased && message.isEmpty else { return false }
            append(message, to: &batch)
        }
        batch.queued(
            session: session, position: position, message: number, qos: rows.byte(3),
            retain: rows.flag(4), isInWindow: false)
        if isShared {
            batch.shared(session: session, position: position, filter: rows.bytes(14))
        }
        if isReleased { batch.released(session: session, position: position) }
        return true
    }

    private func append(_ message: StoredMessage, to batch: inout WriteBatch) {
        batch.message(
            message.number, topic: message.topic, payload: message.payload, qos: message.qos,
            retain: message.retain, expiresAtMs: message.expiresAtMs)
        if !message.messageID.isEmpty {
            batch.named(message.number, messageID: message.messageID)
        }
    }
}
