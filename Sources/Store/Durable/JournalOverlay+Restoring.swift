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

    /// Hands over what the journal says of each session, by rising number; before the first segment
    /// has been moved.
    func forEachChange(_ body: (SessionChange) -> Void) {
        precondition(sessions.count == Int(sessions.endIndex), "a session has left the journal")
        for index in (0..<sessions.endIndex).sorted(by: {
            sessions[$0].number < sessions[$1].number
        }) { body(change(at: index)) }
    }

    private func change(at index: UInt32) -> SessionChange {
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

    /// What a session's queue has in the journal: positions, bytes of those that are not released, and
    /// whether one of them came by a shared subscription.
    func queueTotals(of number: UInt64) -> (messages: Int, bytes: Int, holdsShared: Bool) {
        guard let session = findSession(number) else { return (0, 0, false) }
        var totals = (messages: 0, bytes: 0, holdsShared: false)
        var index = sessions[session].first
        while index != noIndex {
            let entry = entries[index]
            totals.messages += 1
            if entry.shared != noIndex { totals.holdsShared = true }
            if !entry.isReleased {
                let message = messages[entry.message]
                totals.bytes += Int(message.topicCount) + Int(message.payloadCount)
            }
            index = entry.next
        }
        return totals
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
