import Structures

/// What a starting broker needs of the overlay: the sum of what all segments say.
extension JournalOverlay {
    /// What the journal knows of one session, and the database does not.
    struct SessionChange {
        let number: UInt64
        var newSession: SegmentChanges.NewSession?
        /// Nothing else of it counts.
        var isRemoved = false
        /// Only its queue counts.
        var hasEnded = false
        var isAttached: Bool?
        var detachedSinceMs: Int64?
        var horizon: UInt64?
        var end: UInt64?
        /// `nil`: removed.
        var subscriptions: [[UInt8]: UInt8?] = [:]
        var inbound: [UInt16: Bool] = [:]
        var will = SessionDelta.WillState.unchanged

        /// Whether subscriptions, identifiers and the will count.
        var isLive: Bool { !isRemoved && !hasEnded }

        /// Adds what an earlier segment says: what is known already counts.
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

    /// `nil` if the journal does not know the session, by its number.
    func change(of number: UInt64) -> SessionChange? {
        findSession(number).map { change(at: $0) }
    }

    /// The sessions that the journal knows, by rising number; before the first segment has been moved.
    var sortedSessions: [UInt32] {
        precondition(sessions.count == Int(sessions.endIndex), "a session has left the journal")
        return (0..<sessions.endIndex).sorted { sessions[$0].number < sessions[$1].number }
    }

    func change(at index: UInt32) -> SessionChange {
        let session = sessions[index]
        var change = SessionChange(number: session.number)
        var place = SessionDelta.Place(segment: session.deltaSegment, index: session.delta)
        while let delta = delta(at: place) {
            // Numbers are never given again, so nothing comes behind it.
            change.isRemoved = change.isRemoved || delta.isRemoved
            change.hasEnded = change.hasEnded || delta.hasEnded
            change.add(delta)
            place = delta.older
        }
        return change
    }

    /// What a session's queue has in the journal.
    struct QueueSums {
        var messages = 0
        /// Of those that are not released.
        var bytes = 0
        /// One of them came by a shared subscription.
        var holdsShared = false
    }

    /// By the session's index. Entries are gone through as they lie in memory: by session each would
    /// be a cache miss.
    var queueSums: [QueueSums] {
        var sums = [QueueSums](repeating: QueueSums(), count: Int(sessions.endIndex))
        for index in 0..<entries.endIndex {
            let entry = entries[index]
            // No segment's: it is gone.
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

    /// The last word on each topic's retained message; `nil` is none.
    var retainedChanges: [[UInt8]: Content?] {
        var changes: [[UInt8]: Content?] = [:]
        for segment in sealed + [active] {
            for (topic, index) in segment.retained {
                changes[topic] = .some(index.map { content($0) })
            }
        }
        return changes
    }

    /// The last number of each channel that the journal speaks of.
    var sequenceChanges: [[UInt8]: UInt64] {
        var changes: [[UInt8]: UInt64] = [:]
        for segment in sealed + [active] {
            changes.merge(segment.sequences) { _, later in later }
        }
        return changes
    }
}
