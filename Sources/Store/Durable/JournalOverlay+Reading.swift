import Structures

/// What the database and a returning client need of the overlay.
extension JournalOverlay {
    /// A queue position whose content lies in the journal.
    struct StoredPosition: Sendable {
        var position: UInt64
        var qos: UInt8
        var retain: Bool
        var isReleased: Bool
        /// `nil` once it is released.
        var content: Content?
    }

    struct Content: Sendable {
        var number: UInt64
        var topic: SegmentChanges.Location
        var payload: SegmentChanges.Location
        /// As the publisher sent it.
        var qos: UInt8
        var retain: Bool
        var expiresAtMs: Int64
    }

    // MARK: For a client

    /// Positions of a session from `from` to below `below`, rising, at most `limit`.
    func positions(
        of session: UInt64, from: UInt64, below: UInt64, limit: Int
    ) -> [StoredPosition] {
        var result: [StoredPosition] = []
        var index = queues[session]?.first ?? noIndex
        while index != noIndex, entries[index].position < below, result.count < limit {
            let entry = entries[index]
            if entry.position >= from {
                result.append(
                    StoredPosition(
                        position: entry.position, qos: entry.qos, retain: entry.retain,
                        isReleased: entry.isReleased,
                        content: entry.isReleased ? nil : content(entry.message)))
            }
            index = entry.next
        }
        return result
    }

    /// The first position of a session that the journal holds; the database has what is below.
    func firstPosition(of session: UInt64) -> UInt64? {
        queues[session].map { entries[$0.first].position }
    }

    /// Positions that the database still has, or is about to get, although they are done.
    func finished(of session: UInt64) -> [ClosedRange<UInt64>] {
        ranges(of: session) { $0.finished }
    }

    /// Positions of the database that are released, although it does not know yet.
    func released(of session: UInt64) -> [ClosedRange<UInt64>] {
        ranges(of: session) { $0.released }
    }

    private func ranges(
        of session: UInt64, _ ranges: (SessionDelta) -> [ClosedRange<UInt64>]
    ) -> [ClosedRange<UInt64>] {
        var result: [ClosedRange<UInt64>] = []
        for sealed in sealed {
            if let delta = sealed.segment.sessions[session] { result += ranges(delta) }
        }
        if let delta = active.sessions[session] { result += ranges(delta) }
        return SessionDelta.sorted(result)
    }

    private func content(_ index: UInt32) -> Content {
        let message = messages[index]
        return Content(
            number: message.number, topic: message.topic, payload: message.payload,
            qos: message.qos, retain: message.retain, expiresAtMs: message.expiresAtMs)
    }

    // MARK: For the database

    /// The net changes of the active segment.
    func collectChanges() -> SegmentChanges {
        var changes = SegmentChanges(segment: active.number)
        changes.lastSession = lastSession
        changes.lastMessage = lastMessage
        changes.removedSessions = active.removedSessions.sorted()
        var used: [UInt32] = []
        for (number, delta) in active.sessions.sorted(by: { $0.key < $1.key }) {
            collect(delta, of: number, into: &changes, &used)
        }
        for (topic, index) in active.retained {
            changes.retained.append(
                SegmentChanges.RetainedChange(
                    topic: topic, message: index.map { messages[$0].number }))
            if let index { used.append(index) }
        }
        for (channel, number) in active.sequences {
            changes.sequences.append(
                SegmentChanges.SequenceChange(channel: channel, number: number))
        }
        used.sort { messages[$0].number < messages[$1].number }
        for index in used {
            let message = messages[index]
            if changes.messages.last?.number == message.number {
                changes.messages[changes.messages.count - 1].references += 1
                continue
            }
            changes.messages.append(
                SegmentChanges.SurvivingMessage(
                    number: message.number, topic: message.topic, payload: message.payload,
                    qos: message.qos, retain: message.retain, expiresAtMs: message.expiresAtMs,
                    references: 1))
        }
        return changes
    }

    private func collect(
        _ delta: SessionDelta, of session: UInt64, into changes: inout SegmentChanges,
        _ used: inout [UInt32]
    ) {
        if let new = delta.newSession { changes.newSessions.append(new) }
        if delta.isAttached != nil || delta.horizon != nil || delta.end != nil {
            changes.sessionStates.append(
                SegmentChanges.SessionState(
                    number: session, isAttached: delta.isAttached,
                    detachedSinceMs: delta.detachedSinceMs, horizon: delta.horizon,
                    end: delta.end))
        }
        for (filter, qos) in delta.subscriptions {
            changes.subscriptions.append(
                SegmentChanges.SubscriptionChange(session: session, filter: filter, qos: qos))
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
            used.append(index)
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
        var index = queues[session]?.first ?? noIndex
        while index != noIndex {
            let entry = entries[index]
            if entry.segment == active.number {
                changes.queued.append(
                    SegmentChanges.QueuedPosition(
                        session: session, position: entry.position,
                        message: entry.isReleased ? 0 : messages[entry.message].number,
                        qos: entry.qos, retain: entry.retain, isReleased: entry.isReleased))
                if !entry.isReleased { used.append(entry.message) }
            }
            index = entry.next
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
}
