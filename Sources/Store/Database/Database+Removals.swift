import CSQLite

/// Deletes what waiting segments say is done before these segments are applied, slice by slice.
///
/// SQLite writes each page that becomes free into its log, so the transaction of a segment that ends
/// a long queue needs as much room as the queue has taken. On a disk that is nearly full there is no
/// such room, and slices with a checkpoint between them need little of it.
///
/// A slice has an effect of its own: after a crash the journal still says that these positions are
/// done, and their rows and sums are gone together. `removed_ahead` in `meta` is the last segment of
/// which rows may have gone, so that a start knows whether it must count them.
final class RemovalSlices {
    /// Bytes that a slice adds to the log, as far as whole pages allow.
    static let sliceBytes = 2 << 20

    private let database: Database
    private let rows: SQLiteStatement
    private let setProgress: SQLiteStatement
    private let retainedBytes: SQLiteStatement
    private let ranges: [SegmentChanges.PositionRange]
    /// Topics whose retained messages are replaced or removed.
    private let topics: [[UInt8]]
    private let lastSegment: UInt64
    private var index = 0
    /// The first position of the current range that is not deleted yet.
    private var next: UInt64 = 0
    private var nextTopic = 0

    /// Slices for all rows that these segments end, which the database does not have yet.
    init(of segments: [SegmentChanges], in database: Database) throws(StoreFailure) {
        self.database = database
        rows = try database.connection.prepare(
            """
            SELECT position, bytes FROM queue
            WHERE session = ?1 AND position BETWEEN ?2 AND ?3 ORDER BY position
            """, "read")
        setProgress = try database.connection.prepare(
            "INSERT OR REPLACE INTO meta VALUES ('removed_ahead', ?1)", "write")
        retainedBytes = try database.connection.prepare(
            """
            SELECT length(payload) FROM retained JOIN messages ON number = message
            WHERE retained.topic = ?1
            """, "read")
        var ranges: [SegmentChanges.PositionRange] = []
        for segment in segments {
            ranges += segment.removedSessions.map {
                SegmentChanges.PositionRange(session: $0, first: 0, last: UInt64(Int64.max))
            }
            ranges += segment.finished
        }
        self.ranges = ranges
        topics = segments.flatMap { $0.retained.map(\.topic) }
        lastSegment = segments.last?.segment ?? 0
        next = ranges.first?.first ?? 0
    }

    /// Deletes the next rows, in a transaction of its own; false when there were none left.
    func run() throws(StoreFailure) -> Bool {
        guard index < ranges.count || nextTopic < topics.count else { return false }
        var transaction = try SegmentTransaction(
            SegmentChanges(segment: lastSegment), in: database)
        let (formerIndex, formerNext, formerTopic) = (index, next, nextTopic)
        do throws(StoreFailure) {
            try database.connection.transaction { () throws(StoreFailure) in
                try setProgress.run(max(lastSegment, database.removedAhead))
                var left = Self.sliceBytes
                while left > 0, index < ranges.count { left -= try remove(left, &transaction) }
                while left > 0, nextTopic < topics.count {
                    left -= try removeRetained(&transaction)
                }
                try transaction.settleReferences()
            }
        } catch {
            (index, next, nextTopic) = (formerIndex, formerNext, formerTopic)
            throw error
        }
        database.removedAhead = max(lastSegment, database.removedAhead)
        return true
    }

    /// Deletes the retained message of the next topic, which the journal replaces or removes; returns
    /// about how many bytes that adds to the log.
    private func removeRetained(
        _ transaction: inout SegmentTransaction
    ) throws(StoreFailure) -> Int {
        let topic = topics[nextTopic]
        nextTopic += 1
        guard let payload = try retainedBytes.firstNumber(topic),
            let message = try database.writer.deleteRetained.firstNumber(topic)
        else { return 0 }
        transaction.droppedReferences.append(message)
        return StoredBounds.bytes(Int64(payload)) + topic.count + 2 * DatabaseFormat.pageBytes
    }

    /// Deletes rows of the current range; returns about how many bytes that adds to the log.
    private func remove(
        _ most: Int, _ transaction: inout SegmentTransaction
    ) throws(StoreFailure) -> Int {
        let range = ranges[index]
        var bytes = 0
        var last = range.last
        rows.bind(range.session, next, range.last)
        while try rows.next() {
            // The pages at the ends of the range are written as well.
            if bytes == 0 { bytes = 2 * DatabaseFormat.pageBytes }
            bytes += StoredBounds.bytes(rows.integer(1)) + 128
            guard bytes < most else {
                last = rows.number(0)
                rows.reset()
                break
            }
        }
        if bytes > 0 {
            try transaction.remove(
                SegmentChanges.PositionRange(session: range.session, first: next, last: last))
        }
        if last == range.last {
            index += 1
            next = index < ranges.count ? ranges[index].first : 0
        } else {
            next = last + 1
        }
        return bytes
    }
}

extension Database {
    /// The sum of a session's rows in a range of positions.
    func waiting(
        of session: UInt64, in positions: ClosedRange<UInt64>
    ) throws(StoreFailure) -> (messages: Int, bytes: Int) {
        let row = try connection.prepare(
            """
            SELECT count(*), coalesce(sum(bytes), 0) FROM queue
            WHERE session = ?1 AND position BETWEEN ?2 AND ?3
            """, "read")
        row.bind(session, positions.lowerBound, positions.upperBound)
        guard try row.next() else { return (0, 0) }
        return (Int(row.integer(0)), StoredBounds.bytes(row.integer(1)))
    }
}
