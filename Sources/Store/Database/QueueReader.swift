/// Reads windows of queues while the mover writes: a read-only connection of its own, which belongs
/// to one thread at a time.
///
/// Each read sees what was committed when it began.
public final class QueueReader {
    /// What a read took.
    public struct Window: Sendable, Hashable {
        /// Queue rows appended to the batch.
        public var messages = 0
        /// Bytes of their topics and payloads.
        public var bytes = 0
        /// Where the next read begins.
        public var next: UInt64
        /// The database has a row at `next`, below the bound that was asked for.
        public var hasMore = false
    }

    private let connection: SQLiteConnection
    private let rows: SQLiteStatement
    private let sharedMessage: SQLiteStatement

    /// The page cache, in bytes: enough for the paths through the tables; content is read once.
    private static let cacheBytes = 2 * 1_024 * 1_024

    /// Rows that are passed in the time that a search for one takes.
    private static let rowsPerSearch: UInt64 = 16

    /// Opens the file of a data directory beside its ``Database``, which has been opened before.
    public init(directory: String) throws(StoreFailure) {
        let connection = try SQLiteConnection.open(
            DatabaseFile.path(in: directory), .readOnly, cacheBytes: Self.cacheBytes)
        rows = try connection.prepare(
            """
            SELECT position, message, bytes, qos, retain, released, shared, message, published_qos,
                published_retain, expires_at_ms, topic, payload, shared_filter
            FROM queue WHERE session = ?1 AND position >= ?2 AND position < ?3 ORDER BY position
            """, "read")
        sharedMessage = try connection.prepare(
            """
            SELECT number, published_qos, published_retain, expires_at_ms, topic, payload
            FROM messages WHERE number = ?1
            """, "read")
        self.connection = connection
    }

    /// Appends a part of a session's queue to a batch, in the order of positions.
    ///
    /// Each row becomes the records `message` and `queued`, and `shared` if a shared subscription brought
    /// it; a released one has an empty topic and payload, and `released` follows. The window ends before `maxMessages` or `maxBytes` would be
    /// exceeded, but not before its first row: whoever goes on at its end gets on. `isInWindow` is
    /// false throughout: whether a position may have been sent is told by the session's horizon.
    /// - Parameters:
    ///   - session: the session's number.
    ///   - from: the first position that is wanted.
    ///   - below: positions from this one on are not.
    ///   - finished: positions that are done, whatever the database says; rising, without overlaps.
    ///   - maxMessages: at least 1.
    ///   - maxBytes: of topics and payloads.
    ///   - batch: must be recording; no group is ended.
    /// - Returns: what was taken, and where to go on.
    /// - Throws: ``StoreFailure``; what was appended before is whole.
    public func read(
        session: UInt64, from: UInt64, below: UInt64, without finished: [ClosedRange<UInt64>] = [],
        maxMessages: Int, maxBytes: Int, into batch: inout WriteBatch
    ) throws(StoreFailure) -> Window {
        var window = Window(next: below)
        var finished = finished[...]
        rows.bind(session, from, below)
        // A window that ends early leaves the statement amid its rows, and its snapshot open.
        defer { rows.reset() }
        while try rows.next() {
            let position = rows.number(0)
            while let first = finished.first, first.upperBound < position { finished.removeFirst() }
            if let done = finished.first, done.contains(position) {
                if done.upperBound - position >= Self.rowsPerSearch {
                    // What is committed meanwhile takes away what is passed, and adds nothing below.
                    rows.reset()
                    rows.bind(session, done.upperBound, below)
                }
                continue
            }
            let bytes = Int(rows.integer(2))
            guard
                window.messages == 0
                    || (window.messages < maxMessages && window.bytes + bytes <= maxBytes)
            else {
                window.next = position
                window.hasMore = true
                return window
            }
            try append(session, position, to: &batch)
            window.messages += 1
            window.bytes += bytes
        }
        return window
    }

    /// Appends the records of the row that ``rows`` stands on.
    private func append(
        _ session: UInt64, _ position: UInt64, to batch: inout WriteBatch
    ) throws(StoreFailure) {
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
            append(StoredMessage(sharedMessage, first: 0), to: &batch)
        } else {
            append(StoredMessage(rows, first: 7), to: &batch)
        }
        batch.queued(
            session: session, position: position, message: number, qos: rows.byte(3),
            retain: rows.flag(4), isInWindow: false)
        if !rows.isNull(13) {
            batch.shared(session: session, position: position, filter: rows.bytes(13))
        }
        if rows.flag(5) { batch.released(session: session, position: position) }
    }

    private func append(_ message: StoredMessage, to batch: inout WriteBatch) {
        batch.message(
            message.number, topic: message.topic, payload: message.payload, qos: message.qos,
            retain: message.retain, expiresAtMs: message.expiresAtMs)
    }
}
