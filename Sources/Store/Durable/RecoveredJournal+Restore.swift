/// Hands the visitor what a broker keeps in memory: the rows of the database, changed as the
/// journal says.
extension RecoveredJournal {
    /// Returns lines about what makes no sense, for people.
    borrowing func restore(
        beyond database: Database, to visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) -> [String] {
        visitor.visit(lastSession: overlay.lastSession, lastMessage: overlay.lastMessage)
        let known = overlay.sortedSessions
        var lost = LostRows()
        try restoreSessions(database, known, &lost, &visitor)
        try restoreSubscriptions(database, known, &lost, &visitor)
        try restoreInbound(database, known, &lost, &visitor)
        try restoreExpiries(database, known, &visitor)
        var content = SegmentBytes()
        try restoreRetained(database, &content, &lost, &visitor)
        try restoreWills(database, known, &content, &lost, &visitor)
        let damaged = try overlay.restoreFacts(database, &visitor)
        return lost.lines
            + damaged.sorted { $0.key < $1.key }.map { table, count in
                "\(count) facts of table \(table) in the database cannot be read, and what they "
                    + "held is lost"
            }
    }

    // MARK: Sessions

    private borrowing func restoreSessions(
        _ database: Database, _ known: [UInt32], _ lost: inout LostRows,
        _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        let sums = overlay.queueSums
        // Both lists are ordered by number and walked in step, since a search per row would cost
        // more than the row.
        var rest = known[...]
        var failure: StoreFailure?
        // Rows that were removed ahead are not in the sums any more, so what is left is counted.
        let isAhead = database.removedAhead > database.progress.appliedSegment
        let count: Count? =
            isAhead
            ? { session, positions in
                do throws(StoreFailure) {
                    return try database.waiting(of: session, in: positions)
                } catch {
                    failure = error
                    return (0, 0)
                }
            } : nil
        try database.forEachSession { stored in
            guard stored.isSound else { return lost.add("sessions") }
            while let first = rest.first, overlay.sessions[first].number < stored.number {
                rest.removeFirst()
            }
            guard let index = rest.first, overlay.sessions[index].number == stored.number else {
                if !visitor.visit(stored) { lost.add("sessions") }
                return
            }
            let change = overlay.change(at: index)
            guard !change.isRemoved else { return }
            let session = updated(stored, change, sums[Int(index)], count)
            if !session.isSound || !visitor.visit(session) { lost.add("sessions") }
        }
        if let failure { throw failure }
        // Session numbers rise, so these follow all sessions of the database.
        for index in known {
            let change = overlay.change(at: index)
            guard let new = change.newSession, !change.isRemoved else { continue }
            new.clientID.withUnsafeBytes { identifier in
                let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
                (new.userName ?? []).withUnsafeBytes { userName in
                    let stored = StoredSession(
                        number: change.number, clientID: identifier,
                        userName: new.userName.map { $0.isEmpty ? nothing : userName },
                        isAttached: false, detachedSinceMs: 0, horizon: 0, end: 0,
                        waitingMessages: 0, waitingBytes: 0, holdsShared: false,
                        hasEnded: false)
                    let session = updated(stored, change, sums[Int(index)], nil)
                    if !session.isSound || !visitor.visit(session) { lost.add("sessions") }
                }
            }
        }
    }

    /// Counts a session's rows in a range of positions.
    private typealias Count = (UInt64, ClosedRange<UInt64>) -> (messages: Int, bytes: Int)

    /// A session's row as it will be when the database has the journal's changes.
    private borrowing func updated(
        _ stored: StoredSession, _ change: JournalOverlay.SessionChange,
        _ waiting: JournalOverlay.QueueSums, _ count: Count?
    ) -> StoredSession {
        // Acknowledged positions below `end` are still rows of the database. A start reads no
        // queue, so each of them counts with the average size.
        var finished: UInt64 = 0
        var finishedBytes = 0
        for range in overlay.finished(of: stored.number) where range.lowerBound < stored.end {
            let positions = range.lowerBound...min(range.upperBound, stored.end - 1)
            if let found = count?(stored.number, positions) {
                finished += UInt64(found.messages)
                finishedBytes += found.bytes
            } else {
                finished += positions.upperBound - positions.lowerBound + 1
            }
        }
        let rows = stored.waitingMessages
        let left = max(0, rows - Int(clamping: finished))
        let leftBytes =
            count != nil
            ? max(0, stored.waitingBytes - finishedBytes)
            : rows == 0 ? 0 : stored.waitingBytes / rows * left
        return StoredSession(
            number: stored.number, clientID: stored.clientID,
            userName: stored.userName, isAttached: change.isAttached ?? stored.isAttached,
            detachedSinceMs: change.detachedSinceMs ?? stored.detachedSinceMs,
            horizon: change.horizon ?? stored.horizon, end: change.end ?? stored.end,
            waitingMessages: left + waiting.messages,
            waitingBytes: (left == rows ? stored.waitingBytes : leftBytes) + waiting.bytes,
            holdsShared: stored.holdsShared || waiting.holdsShared,
            hasEnded: stored.hasEnded || change.hasEnded)
    }

    private borrowing func restoreSubscriptions(
        _ database: Database, _ sessions: [UInt32], _ lost: inout LostRows,
        _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        // Rows are ordered by session and walked in step with the journal's sessions.
        var rest = sessions[...]
        var known: JournalOverlay.SessionChange?
        var lastSession: UInt64 = 0
        try database.forEachSubscription { session, filter, grant in
            if session != lastSession {
                lastSession = session
                while let first = rest.first, overlay.sessions[first].number < session {
                    rest.removeFirst()
                }
                known = rest.first.flatMap { index in
                    overlay.sessions[index].number == session ? overlay.change(at: index) : nil
                }
            }
            if let known, !known.isLive || known.subscriptions[[UInt8](filter)] != nil { return }
            guard StoredBounds.isText(filter),
                visitor.visit(subscription: filter, of: session, grant: grant)
            else { return lost.add("subscriptions") }
        }
        for index in sessions {
            let change = overlay.change(at: index)
            guard change.isLive else { continue }
            for case (let filter, let grant?) in change.subscriptions {
                let isKept = filter.withUnsafeBytes {
                    visitor.visit(subscription: $0, of: change.number, grant: grant)
                }
                if !isKept { lost.add("subscriptions") }
            }
        }
    }

    private borrowing func restoreInbound(
        _ database: Database, _ sessions: [UInt32], _ lost: inout LostRows,
        _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        try database.forEachInbound { session, identifier in
            let change = overlay.change(of: session)
            if let change, !change.isLive || change.inbound[identifier] != nil { return }
            if !visitor.visit(packetIdentifier: identifier, of: session) { lost.add("inbound") }
        }
        for index in sessions {
            let change = overlay.change(at: index)
            guard change.isLive else { continue }
            for (identifier, isPresent) in change.inbound where isPresent {
                if !visitor.visit(packetIdentifier: identifier, of: change.number) {
                    lost.add("inbound")
                }
            }
        }
    }

    // MARK: Messages

    /// Tells when queued messages expire: of the database, unless the journal ends them, then of the
    /// journal. A message of the database that the journal releases is among them; it is in flight.
    private borrowing func restoreExpiries(
        _ database: Database, _ sessions: [UInt32],
        _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        // Rows come in the order of their times, so what the journal says is looked up by session.
        var removed: Set<UInt64> = []
        var ended: [UInt64: [ClosedRange<UInt64>]] = [:]
        for index in sessions {
            let number = overlay.sessions[index].number
            let ranges = overlay.finished(of: number)
            if overlay.change(at: index).isRemoved { removed.insert(number) }
            if !ranges.isEmpty { ended[number] = ranges }
        }
        try database.forEachExpiry { session, position, bytes, expiresAtMs in
            // Whoever reads the message finds out.
            guard StoredBounds.isTime(expiresAtMs) else { return }
            guard !removed.contains(session),
                ended.isEmpty || !(ended[session].map { Self.contains(position, $0) } ?? false)
            else { return }
            visitor.visit(
                position: position, of: session, bytes: bytes, expiresAtMs: expiresAtMs)
        }
        overlay.forEachExpiry { session, position, bytes, expiresAtMs in
            guard StoredBounds.isTime(expiresAtMs) else { return }
            visitor.visit(
                position: position, of: session, bytes: bytes, expiresAtMs: expiresAtMs)
        }
    }

    /// True when rising ranges contain a position.
    private static func contains(_ position: UInt64, _ ranges: [ClosedRange<UInt64>]) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < position { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(position)
    }

    private borrowing func restoreRetained(
        _ database: Database, _ content: inout SegmentBytes, _ lost: inout LostRows,
        _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        let changes = overlay.retainedChanges
        try database.forEachRetained { message in
            guard message.isSound else { return lost.add("retained") }
            let isCurrent = changes.isEmpty || changes[[UInt8](message.topic)] == nil
            if isCurrent, !visitor.visit(retained: message) { lost.add("retained") }
        }
        // Oldest first, as in the database.
        for message in changes.values.compactMap(\.self).sorted(by: { $0.number < $1.number }) {
            let message = try read(message, &content)
            if !message.isSound || !visitor.visit(retained: message) { lost.add("retained") }
        }
    }

    private borrowing func restoreWills(
        _ database: Database, _ sessions: [UInt32], _ content: inout SegmentBytes,
        _ lost: inout LostRows, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        try database.forEachWill { session, message in
            if let change = overlay.change(of: session) {
                guard case .unchanged = change.will, change.isLive else { return }
            }
            guard message.isSound, visitor.visit(will: message, of: session) else {
                return lost.add("wills")
            }
        }
        var wills: [(session: UInt64, message: JournalOverlay.Content)] = []
        for index in sessions {
            let change = overlay.change(at: index)
            guard case .message(let message) = change.will, change.isLive else { continue }
            wills.append((change.number, overlay.content(message)))
        }
        for will in wills {
            let message = try read(will.message, &content)
            if !message.isSound || !visitor.visit(will: message, of: will.session) {
                lost.add("wills")
            }
        }
    }

    /// A message; its bytes are valid until the next call.
    private borrowing func read(
        _ message: JournalOverlay.Content, _ content: inout SegmentBytes
    ) throws(StoreFailure) -> StoredMessage {
        let run = ContentRun(
            topic: message.topic, payload: message.payload, messageID: message.messageID)
        guard let segment = journal.reader(of: run.location.segment) else {
            preconditionFailure(
                "segment \(run.location.segment) was freed before it was restored")
        }
        let (topic, payload, messageID) = run.parts(of: try content.read(run.location, segment))
        return StoredMessage(
            number: message.number, topic: topic, payload: payload, qos: message.qos,
            retain: message.retain, expiresAtMs: message.expiresAtMs, messageID: messageID)
    }
}
