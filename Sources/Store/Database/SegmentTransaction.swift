/// Writes one segment's changes into the database; lives within one transaction.
///
/// Rows are written table by table in the order of their keys. That costs a fraction of writing
/// messages in random order (docs/decisions/0009).
struct SegmentTransaction {
    /// Reads a part of the journal; the bytes are valid until the next call.
    typealias Content = (SegmentChanges.Location) throws(StoreFailure) -> UnsafeRawBufferPointer

    let database: Database
    let changes: SegmentChanges
    let placed: SegmentContent
    /// The message of each dropped reference, one entry per reference; settled in the order of
    /// their numbers.
    var droppedReferences: [UInt64] = []
    /// The sum of the latest changes to one session's queue.
    var totals = QueueTotals()

    init(_ changes: SegmentChanges, in database: Database) throws(StoreFailure) {
        self.database = database
        self.changes = changes
        placed = try SegmentContent(changes, path: database.path)
    }

    mutating func run(_ content: Content) throws(StoreFailure) {
        try removeSessions()
        try writeSessions()
        try endSessions()
        try writeSubscriptions()
        try writeMessages(content)
        try writeQueued(content)
        try release()
        try finish()
        try writeInbound()
        try writeRetained()
        try writeWills()
        try database.facts.write(changes.facts)
        try settleReferences()
        try database.writer.updateMeta.run(
            changes.segment, changes.lastSession, changes.lastMessage)
    }

    private mutating func removeSessions() throws(StoreFailure) {
        for session in changes.removedSessions {
            _ = try collect(session, 0, .max)
            try database.writer.deleteQueued.run(session, UInt64(0), UInt64.max)
            try dropWill(of: session)
            try database.writer.deleteSubscriptions.run(session)
            try database.writer.deleteAllInbound.run(session)
            try database.writer.deleteSession.run(session)
        }
    }

    private func writeSessions() throws(StoreFailure) {
        for session in changes.newSessions {
            try database.writer.insertSession.run(
                session.number, session.clientID, session.userName)
        }
        for state in changes.sessionStates {
            try database.writer.updateSession.run(
                state.number, state.isAttached, state.detachedSinceMs, state.horizon, state.end)
        }
    }

    /// Deletes everything of an ended session except its queue.
    private mutating func endSessions() throws(StoreFailure) {
        for session in changes.endedSessions {
            try dropWill(of: session)
            try database.writer.deleteSubscriptions.run(session)
            try database.writer.deleteAllInbound.run(session)
            try database.writer.endSession.run(session)
        }
    }

    private func writeSubscriptions() throws(StoreFailure) {
        for change in changes.subscriptions {
            if let grant = change.grant {
                try database.writer.upsertSubscription.run(change.session, change.filter, grant)
            } else {
                try database.writer.deleteSubscription.run(change.session, change.filter)
            }
        }
    }

    private func writeInbound() throws(StoreFailure) {
        for change in changes.inbound {
            if change.isPresent {
                try database.writer.insertInbound.run(change.session, change.packetIdentifier)
            } else {
                try database.writer.deleteInbound.run(change.session, change.packetIdentifier)
            }
        }
    }

    private mutating func writeRetained() throws(StoreFailure) {
        for change in changes.retained {
            if let replaced = try database.writer.deleteRetained.firstNumber(change.topic) {
                droppedReferences.append(replaced)
            }
            guard let message = change.message else { continue }
            try database.writer.insertRetained.run(message, change.topic)
        }
    }

    private mutating func writeWills() throws(StoreFailure) {
        for change in changes.wills {
            try dropWill(of: change.session)
            guard let message = change.message else { continue }
            try database.writer.insertWill.run(change.session, message)
        }
    }

    private mutating func dropWill(of session: UInt64) throws(StoreFailure) {
        if let message = try database.writer.deleteWill.firstNumber(session) {
            droppedReferences.append(message)
        }
    }
}

extension Database {
    /// Applies a segment's changes in one transaction, which is durable when this returns.
    ///
    /// Applying a segment again changes nothing, because a crash may come between this call and the
    /// reuse of the segment's file.
    /// - Parameters:
    ///   - changes: the changes of the next segment that has any.
    ///   - content: reads a part of the journal; its bytes are valid until its next call. It is
    ///     asked for at most 330 KB at a time, however large a payload is.
    /// - Returns: false if the segment had already been applied.
    /// - Throws: ``StoreFailure`` of `content` or SQLite. Nothing of the segment is applied then,
    ///   and the call may be repeated.
    @discardableResult
    public func apply(
        _ changes: SegmentChanges,
        content: (SegmentChanges.Location) throws(StoreFailure) -> UnsafeRawBufferPointer
    ) throws(StoreFailure) -> Bool {
        guard changes.segment > progress.appliedSegment else { return false }
        var transaction = try SegmentTransaction(changes, in: self)
        try connection.transaction { () throws(StoreFailure) in
            try transaction.run(content)
        }
        progress = Progress(
            appliedSegment: changes.segment,
            lastSession: max(progress.lastSession, changes.lastSession),
            lastMessage: max(progress.lastMessage, changes.lastMessage))
        return true
    }
}
