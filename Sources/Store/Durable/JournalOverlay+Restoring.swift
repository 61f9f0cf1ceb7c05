import Structures

/// The overlay's content for a starting broker: the sum of the changes in all segments.
extension JournalOverlay {
    /// Changes of one session that are in the journal and not in the database.
    struct SessionChange {
        let number: UInt64
        var newSession: SegmentChanges.NewSession?
        /// True when the session is removed, in which case nothing else counts.
        var isRemoved = false
        /// True when the session has ended, in which case only its queue counts.
        var hasEnded = false
        var isAttached: Bool?
        var detachedSinceMs: Int64?
        var horizon: UInt64?
        var end: UInt64?
        /// `nil` for a removed subscription.
        var subscriptions: [[UInt8]: UInt32?] = [:]
        var inbound: [UInt16: Bool] = [:]
        var will = SessionDelta.WillState.unchanged

        /// True when subscriptions, packet identifiers and the will count.
        var isLive: Bool { !isRemoved && !hasEnded }

        /// Adds the changes of an earlier segment, where later ones do not say otherwise.
        mutating func add(_ older: SessionDelta) {
            newSession = newSession ?? older.newSession
            isAttached = isAttached ?? older.isAttached
            detachedSinceMs = detachedSinceMs ?? older.detachedSinceMs
            horizon = horizon ?? older.horizon
            end = end ?? older.end
            subscriptions.merge(older.subscriptions) { known, _ in known }
            inbound.merge(older.inbound) { known, _ in known }
            if case .unchanged = will { will = older.will }
        }
    }

    /// The changes of a session, by its number; `nil` if the journal has none.
    func change(of number: UInt64) -> SessionChange? {
        findSession(number).map { change(at: $0) }
    }

    /// The sessions in the journal, by rising number. Must be called before any segment has been
    /// moved.
    var sortedSessions: [UInt32] {
        precondition(sessions.count == Int(sessions.endIndex), "a session has left the journal")
        return (0..<sessions.endIndex).sorted { sessions[$0].number < sessions[$1].number }
    }

    func change(at index: UInt32) -> SessionChange {
        let session = sessions[index]
        var change = SessionChange(number: session.number)
        var place = SessionDelta.Place(segment: session.deltaSegment, index: session.delta)
        while let delta = delta(at: place) {
            // Session numbers are never used again, so no record follows.
            change.isRemoved = change.isRemoved || delta.isRemoved
            change.hasEnded = change.hasEnded || delta.hasEnded
            change.add(delta)
            place = delta.older
        }
        return change
    }

    /// Sums over the part of a session's queue that is in the journal.
    struct QueueSums {
        var messages = 0
        /// Bytes of messages that are not released.
        var bytes = 0
        /// True when a message came by a shared subscription.
        var holdsShared = false
    }

    /// The sums by session index. Entries are visited in the order of memory, since visiting them
    /// by session would cause a cache miss for each.
    var queueSums: [QueueSums] {
        var sums = [QueueSums](repeating: QueueSums(), count: Int(sessions.endIndex))
        for index in 0..<entries.endIndex {
            let entry = entries[index]
            // An entry without a segment was removed.
            guard entry.segment != 0 else { continue }
            let session = Int(entry.session)
            sums[session].messages += 1
            if entry.shared != noIndex { sums[session].holdsShared = true }
            if !entry.isReleased {
                let message = messages[entry.message]
                sums[session].bytes += Int(message.topicCount) + Int(message.payloadCount)
            }
        }
        return sums
    }

    /// Calls `body` for each queue position whose message expires and is not released, in no order.
    func forEachExpiry(
        _ body: (
            _ session: UInt64, _ position: UInt64, _ bytes: Int, _ expiresAtMs: Int64
        ) -> Void
    ) {
        for index in 0..<entries.endIndex {
            let entry = entries[index]
            guard entry.segment != 0, !entry.isReleased else { continue }
            let message = messages[entry.message]
            if message.expiresAtMs != 0 {
                body(
                    sessions[entry.session].number, entry.position,
                    Int(message.topicCount) + Int(message.payloadCount), message.expiresAtMs)
            }
        }
    }

    /// The last change of each topic's retained message; `nil` for a removed one.
    var retainedChanges: [[UInt8]: Content?] {
        var changes: [[UInt8]: Content?] = [:]
        for segment in sealed + [active] {
            for (topic, index) in segment.retained {
                changes[topic] = .some(index.map { content($0) })
            }
        }
        return changes
    }
}
