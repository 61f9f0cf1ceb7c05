import Structures

/// Reading the overlay: for returning clients and for the database.
extension JournalOverlay {
    /// A queue position whose message is in the journal.
    struct StoredPosition: Sendable {
        var position: UInt64
        var qos: UInt8
        var retain: Bool
        var isReleased: Bool
        /// `nil` once the message is released.
        var content: Content?
        /// The shared subscription that chose this session; empty for none.
        var shared: [UInt8]
    }

    /// The place of a message's content in the journal.
    struct Content: Sendable {
        var number: UInt64
        var topic: SegmentChanges.Location
        var payload: SegmentChanges.Location
        /// The QoS of the publisher's PUBLISH.
        var qos: UInt8
        var retain: Bool
        var expiresAtMs: Int64
        /// `nil` for a message without an identifier.
        var messageID: SegmentChanges.Location?
    }

    // MARK: For a client

    /// The positions of a session in `from ..< below`, rising, at most `limit`.
    func positions(
        of number: UInt64, from: UInt64, below: UInt64, limit: Int
    ) -> [StoredPosition] {
        var result: [StoredPosition] = []
        guard let session = findSession(number) else { return result }
        var index = sessions[session].first
        while index != noIndex, entries[index].position < below, result.count < limit {
            let entry = entries[index]
            if entry.position >= from {
                result.append(
                    StoredPosition(
                        position: entry.position, qos: entry.qos, retain: entry.retain,
                        isReleased: entry.isReleased,
                        content: entry.isReleased ? nil : content(entry.message),
                        shared: sharedFilters[entry.shared]))
            }
            index = entry.next
        }
        return result
    }

    /// The first position of a session that is in the journal. All lower positions are in the
    /// database.
    func firstPosition(of number: UInt64) -> UInt64? {
        guard let session = findSession(number) else { return nil }
        let first = sessions[session].first
        return first == noIndex ? nil : entries[first].position
    }

    /// Positions that are done although the database still has them, or is about to get them.
    func finished(of session: UInt64) -> [ClosedRange<UInt64>] {
        ranges(of: session) { $0.finished }
    }

    /// Positions of the database that are released, which the database does not know yet.
    func released(of session: UInt64) -> [ClosedRange<UInt64>] {
        ranges(of: session) { $0.released }
    }

    private func ranges(
        of number: UInt64, _ ranges: (SessionDelta) -> [ClosedRange<UInt64>]
    ) -> [ClosedRange<UInt64>] {
        guard let index = findSession(number) else { return [] }
        var result: [ClosedRange<UInt64>] = []
        var place = SessionDelta.Place(
            segment: sessions[index].deltaSegment, index: sessions[index].delta)
        while let delta = delta(at: place) {
            result += ranges(delta)
            place = delta.older
        }
        return SessionDelta.sorted(result)
    }

    /// The changes at a place; `nil` when the database has that segment, and so all segments before
    /// it.
    func delta(at place: SessionDelta.Place) -> SessionDelta? {
        guard place.index != noIndex else { return nil }
        if place.segment == active.number { return active.deltas[Int(place.index)] }
        return sealed.first { $0.number == place.segment }?.deltas[Int(place.index)]
    }

    func content(_ index: UInt32) -> Content {
        let message = messages[index]
        return Content(
            number: message.number, topic: message.topic, payload: message.payload,
            qos: message.qos, retain: message.retain, expiresAtMs: message.expiresAtMs,
            messageID: message.messageID)
    }

    // MARK: For the database

    /// The net changes of the active segment. Messages are sorted; everything else has the order of
    /// its records.
    ///
    /// A commit waits for this, so it walks memory in order and leaves the sorting to the mover.
    func collectChanges() -> SegmentChanges {
        var changes = SegmentChanges(segment: active.number)
        changes.lastSession = lastSession
        changes.lastMessage = lastMessage
        changes.sessionCount = active.deltas.count
        for delta in active.deltas {
            if delta.isRemoved {
                // A session that was both created and removed in this segment leaves no trace.
                if delta.newSession == nil { changes.removedSessions.append(delta.session) }
            } else {
                collect(delta, into: &changes)
            }
        }
        for (topic, index) in active.retained {
            changes.retained.append(
                SegmentChanges.RetainedChange(
                    topic: topic, message: index.map { messages[$0].number }))
        }
        changes.facts = active.facts.changes
        changes.sharedFilters = sharedFilters.texts
        for place in activeEntries.contents {
            let entry = entries[place.index]
            guard entry.position == place.position, entry.session == place.session,
                entry.segment == active.number
            else { continue }
            changes.queued.append(
                SegmentChanges.QueuedPosition(
                    session: sessions[entry.session].number, position: entry.position,
                    message: entry.isReleased ? 0 : messages[entry.message].number,
                    qos: entry.qos, retain: entry.retain, isReleased: entry.isReleased,
                    shared: entry.shared))
        }
        for place in activeMessages.contents {
            let message = messages[place.index]
            guard message.number == place.number, message.references > 0 else { continue }
            changes.messages.append(
                SegmentChanges.SurvivingMessage(
                    number: message.number, topic: message.topic, payload: message.payload,
                    qos: message.qos, retain: message.retain, expiresAtMs: message.expiresAtMs,
                    references: message.references, messageID: message.messageID))
        }
        return changes
    }

    private func collect(_ delta: SessionDelta, into changes: inout SegmentChanges) {
        let session = delta.session
        if let new = delta.newSession { changes.newSessions.append(new) }
        if delta.hasEnded { changes.endedSessions.append(session) }
        if delta.isAttached != nil || delta.horizon != nil || delta.end != nil {
            changes.sessionStates.append(
                SegmentChanges.SessionState(
                    number: session, isAttached: delta.isAttached,
                    detachedSinceMs: delta.detachedSinceMs, horizon: delta.horizon,
                    end: delta.end))
        }
        for (filter, grant) in delta.subscriptions {
            changes.subscriptions.append(
                SegmentChanges.SubscriptionChange(session: session, filter: filter, grant: grant))
        }
        for (identifier, isPresent) in delta.inbound {
            changes.inbound.append(
                SegmentChanges.InboundChange(
                    session: session, packetIdentifier: identifier, isPresent: isPresent))
        }
        switch delta.will {
        case .unchanged: break
        case .removed:
            changes.wills.append(SegmentChanges.WillChange(session: session, message: nil))
        case .message(let index):
            changes.wills.append(
                SegmentChanges.WillChange(session: session, message: messages[index].number))
        }
        for range in SessionDelta.sorted(delta.finished) {
            changes.finished.append(
                SegmentChanges.PositionRange(
                    session: session, first: range.lowerBound, last: range.upperBound))
        }
        for range in SessionDelta.sorted(delta.released) {
            changes.released.append(
                SegmentChanges.PositionRange(
                    session: session, first: range.lowerBound, last: range.upperBound))
        }
    }
}

extension JournalOverlay.Message {
    var topic: SegmentChanges.Location {
        SegmentChanges.Location(segment: segment, offset: topicOffset, count: topicCount)
    }
    var payload: SegmentChanges.Location {
        SegmentChanges.Location(segment: segment, offset: payloadOffset, count: payloadCount)
    }
    /// Where the identifier lies, if the message has one.
    var messageIDOffset: UInt32 {
        payloadOffset + payloadCount + UInt32(WriteBatch.bytesBeforeMessageID)
    }
    var messageID: SegmentChanges.Location? {
        guard messageIDCount > 0 else { return nil }
        return SegmentChanges.Location(
            segment: segment, offset: messageIDOffset, count: UInt32(messageIDCount))
    }
}
