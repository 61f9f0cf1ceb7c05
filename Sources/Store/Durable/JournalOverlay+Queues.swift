import Structures

/// Queue positions: queued, released and done.
extension JournalOverlay {
    mutating func queue(
        _ number: UInt64, _ position: UInt64, _ messageNumber: UInt64, _ qos: UInt8,
        _ retain: Bool, _ isInWindow: Bool
    ) -> Bool {
        guard let message = find(messageNumber) else { return false }
        let session = session(number)
        let last = sessions[session].last
        guard last == noIndex || entries[last].position < position else { return false }
        let delta = delta(ofRecord: session)
        guard !delta.isRemoved else { return true }
        delta.end = position + 1
        if isInWindow { delta.horizon = position + 1 }
        messages[message].references += 1
        active.weight += 1
        let index = entries.insert(
            Entry(
                position: position, segment: active.number, message: message, next: noIndex,
                session: session, qos: qos, retain: retain, isReleased: false, shared: noIndex))
        activeEntries.append(EntryPlace(position: position, session: session, index: index))
        if last == noIndex {
            sessions[session].first = index
        } else {
            entries[last].next = index
        }
        sessions[session].last = index
        return true
    }

    /// Notes the shared subscription of the position that was queued last; false when it is another
    /// position.
    mutating func setShared(_ number: UInt64, _ position: UInt64, _ filter: [UInt8]) -> Bool {
        let session = session(number)
        let last = sessions[session].last
        guard last != noIndex, entries[last].position == position, entries[last].shared == noIndex
        else { return delta(ofRecord: session).isRemoved }
        entries[last].shared = sharedFilters.take(filter)
        return true
    }

    /// Notes PUBREC for a position of QoS 2: only PUBREL is still owed.
    mutating func release(_ number: UInt64, _ position: UInt64) {
        let session = session(number)
        guard let (index, _) = findEntry(session, position) else {
            delta(ofRecord: session).release(position)
            return
        }
        guard entries[index].qos == 2 else { return }
        entries[index].isReleased = true
        if entries[index].segment == active.number {
            dropReference(entries[index].message)
            entries[index].message = noIndex
        } else {
            delta(ofRecord: session).release(position)
        }
    }

    /// Notes that a position is done.
    mutating func finish(_ number: UInt64, _ position: UInt64) {
        let session = session(number)
        guard let (index, previous) = findEntry(session, position) else {
            delta(ofRecord: session).finish(position)
            active.removals += 1
            return
        }
        let entry = entries[index]
        if entry.segment != active.number {
            delta(ofRecord: session).finish(position)
            active.removals += 1
        }
        if previous == noIndex {
            sessions[session].first = entry.next
        } else {
            entries[previous].next = entry.next
        }
        if sessions[session].last == index { sessions[session].last = previous }
        removeEntry(index)
    }

    mutating func removeEntry(_ index: UInt32) {
        dropReference(entries[index].message)
        sharedFilters.drop(entries[index].shared)
        // No segment owns it any more, even if a list still holds its index.
        entries[index].segment = 0
        entries.remove(index)
    }

    /// Finds the entry of a position and the one before it. Acknowledged positions are near the
    /// front.
    private func findEntry(
        _ session: UInt32, _ position: UInt64
    ) -> (index: UInt32, previous: UInt32)? {
        var previous = noIndex
        var index = sessions[session].first
        while index != noIndex, entries[index].position <= position {
            if entries[index].position == position { return (index, previous) }
            previous = index
            index = entries[index].next
        }
        return nil
    }
}
