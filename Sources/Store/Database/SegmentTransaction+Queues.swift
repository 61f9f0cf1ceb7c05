/// The sum of several changes to one session's queue.
struct QueueTotals {
    var session: UInt64 = 0
    var messages: Int64 = 0
    var bytes: Int64 = 0
    /// True when one of the messages came by a shared subscription.
    var holdsShared = false
}

/// Writes and deletes queue rows, and updates each session's sums.
extension SegmentTransaction {
    /// The most dropped references that are collected before they are settled.
    private static let mostDropped = 65_536

    mutating func writeQueued(_ content: Content) throws(StoreFailure) {
        for (entry, index) in zip(changes.queued, placed.messageOfQueued) {
            if index < 0 {
                try insert(entry, bytes: 0, expiresAtMs: nil)
            } else {
                let message = changes.messages[Int(index)]
                let bytes = Int64(message.topic.count) + Int64(message.payload.count)
                if placed.isShared[Int(index)] {
                    try insert(entry, bytes: bytes, expiresAtMs: message.expiresAtMs)
                } else {
                    let (topic, payload, messageID) = try read(message, content)
                    try database.writer.insertQueued.run(
                        entry.session, entry.position, entry.message, bytes, entry.qos,
                        entry.retain, false, false, message.qos, message.retain,
                        message.expiresAtMs, topic, payload, sharedFilter(entry), messageID)
                    try add(
                        to: entry.session, messages: 1, bytes: bytes, isShared: entry.isShared)
                }
            }
        }
        try flushTotals()
    }

    private func sharedFilter(_ entry: SegmentChanges.QueuedPosition) -> [UInt8]? {
        entry.isShared ? changes.sharedFilters[Int(entry.shared)] : nil
    }

    /// Writes a row without content: a released one, or one whose content is in `messages`.
    private mutating func insert(
        _ entry: SegmentChanges.QueuedPosition, bytes: Int64, expiresAtMs: Int64?
    ) throws(StoreFailure) {
        let null: Int64? = nil
        try database.writer.insertQueued.run(
            entry.session, entry.position, entry.message, bytes, entry.qos, entry.retain,
            entry.isReleased, !entry.isReleased, null, null, expiresAtMs, null, null,
            sharedFilter(entry), null)
        try add(to: entry.session, messages: 1, bytes: bytes, isShared: entry.isShared)
    }

    /// Removes the content of QoS 2 messages whose PUBREC has come, since nothing needs it again.
    mutating func release() throws(StoreFailure) {
        for range in changes.released {
            let (_, bytes) = try collect(
                range.session, range.first, range.last, onlyExactlyOnce: true)
            try database.writer.releaseQueued.run(range.session, range.first, range.last)
            try add(to: range.session, messages: 0, bytes: -bytes)
        }
        try flushTotals()
    }

    /// Deletes the rows of messages that are done.
    mutating func finish() throws(StoreFailure) {
        for range in changes.finished { try removeRows(range) }
        try flushTotals()
    }

    /// Deletes the rows of a range, with what they count for.
    mutating func remove(_ range: SegmentChanges.PositionRange) throws(StoreFailure) {
        try removeRows(range)
        try flushTotals()
    }

    private mutating func removeRows(
        _ range: SegmentChanges.PositionRange
    ) throws(StoreFailure) {
        let (messages, bytes) = try collect(range.session, range.first, range.last)
        guard messages > 0 else { return }
        try database.writer.deleteQueued.run(range.session, range.first, range.last)
        try add(to: range.session, messages: -messages, bytes: -bytes)
    }

    /// Sums rows that are about to lose their content, and collects the references that they drop.
    mutating func collect(
        _ session: UInt64, _ first: UInt64, _ last: UInt64, onlyExactlyOnce: Bool = false
    ) throws(StoreFailure) -> (messages: Int64, bytes: Int64) {
        if droppedReferences.count >= Self.mostDropped { try settleReferences() }
        var messages: Int64 = 0
        var bytes: Int64 = 0
        database.writer.selectQueued.bind(session, first, last)
        while try database.writer.selectQueued.next() {
            guard !onlyExactlyOnce || database.writer.selectQueued.byte(3) == 2 else { continue }
            messages += 1
            bytes += Int64(StoredBounds.bytes(database.writer.selectQueued.integer(0)))
            if database.writer.selectQueued.flag(1) {
                droppedReferences.append(database.writer.selectQueued.number(2))
            }
        }
        return (messages, bytes)
    }

    private mutating func add(
        to session: UInt64, messages: Int64, bytes: Int64, isShared: Bool = false
    ) throws(StoreFailure) {
        if totals.session != session {
            try flushTotals()
            totals.session = session
        }
        totals.messages += messages
        totals.bytes += bytes
        if isShared { totals.holdsShared = true }
    }

    private mutating func flushTotals() throws(StoreFailure) {
        guard totals.messages != 0 || totals.bytes != 0 else { return }
        try database.writer.addToSession.run(
            totals.session, totals.messages, totals.bytes, totals.holdsShared)
        totals = QueueTotals()
    }
}
