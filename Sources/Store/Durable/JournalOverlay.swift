import Structures

/// What the journal holds and the database does not: the net effect of its records, in memory.
///
/// Bounded by the journal's size, not by what waits in queues: a position takes some 40 bytes until its
/// segment has been moved to the database. The store's thread feeds it what was written, seals a
/// segment when it is full, and lets its part go when the database has it.
struct JournalOverlay: ~Copyable {
    /// A queue position whose record the journal holds.
    struct Entry: BitwiseCopyable {
        var position: UInt64
        var segment: UInt64
        /// ``noIndex`` once it is released.
        var message: UInt32
        /// The session's next entry.
        var next: UInt32
        var qos: UInt8
        var retain: Bool
        var isReleased: Bool
    }

    struct Message: BitwiseCopyable {
        var number: UInt64
        var segment: UInt64
        var expiresAtMs: Int64
        var topicOffset: UInt32
        var topicCount: UInt32
        var payloadOffset: UInt32
        var payloadCount: UInt32
        var references: UInt32
        var qos: UInt8
        var retain: Bool
    }

    /// A session's entries, by rising position.
    struct Queue: BitwiseCopyable {
        var first: UInt32
        var last: UInt32
    }

    /// A segment's changes apart from queue positions and messages.
    final class Segment {
        let number: UInt64
        var sessions: [UInt64: SessionDelta] = [:]
        var removedSessions: [UInt64] = []
        /// The index of the message, or `nil` for none any more.
        var retained: [[UInt8]: UInt32?] = [:]
        var sequences: [[UInt8]: UInt64] = [:]
        var entryCount = 0

        init(number: UInt64) { self.number = number }

        func delta(_ session: UInt64) -> SessionDelta {
            if let delta = sessions[session] { return delta }
            let delta = SessionDelta()
            sessions[session] = delta
            return delta
        }
    }

    /// A segment that the database is to take over, with what its part of the overlay hangs on.
    struct Sealed {
        let segment: Segment
        let changes: SegmentChanges
    }

    private(set) var entries = Slab<Entry>()
    private(set) var messages = Slab<Message>()
    private(set) var queues: [UInt64: Queue] = [:]
    /// The one that is written to.
    private(set) var active: Segment
    /// Full, and not in the database yet; oldest first.
    private(set) var sealed: [Sealed] = []
    private(set) var lastSession: UInt64
    private(set) var lastMessage: UInt64
    /// Messages of the group that is read: later records of the group refer to them by number.
    private var group = GrowableBuffer<(number: UInt64, index: UInt32)>()

    init(activeSegment: UInt64, lastSession: UInt64, lastMessage: UInt64) {
        active = Segment(number: activeSegment)
        self.lastSession = lastSession
        self.lastMessage = lastMessage
    }

    /// Positions of the active segment, whether they are done or not: what bounds the memory.
    var activeWeight: Int { active.entryCount }

    /// Whether the active segment has changed nothing.
    var isActiveEmpty: Bool {
        active.entryCount == 0 && active.sessions.isEmpty && active.removedSessions.isEmpty
            && active.retained.isEmpty && active.sequences.isEmpty
    }

    // MARK: Records

    /// Applies the records of one frame, whose first byte lies at `offset` of the active segment's file.
    mutating func apply(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt32
    ) throws(DamagedRecord) {
        var reader = RecordReader(bytes)
        while let record = try reader.next() { apply(record, bytes, offset) }
        endGroup()
    }

    private mutating func apply(
        _ record: RecordView, _ bytes: UnsafeRawBufferPointer, _ offset: UInt32
    ) {
        switch record {
        case .commit: endGroup()
        case .message(let number, let topic, let payload, let qos, let retain, let expiresAtMs):
            lastMessage = max(lastMessage, number)
            let index = messages.insert(
                Message(
                    number: number, segment: active.number, expiresAtMs: expiresAtMs,
                    topicOffset: offset + UInt32(topic.offset), topicCount: UInt32(topic.count),
                    payloadOffset: offset + UInt32(payload.offset),
                    payloadCount: UInt32(payload.count), references: 1, qos: qos,
                    retain: retain))
            group.append((number, index))
        case .queued(let session, let position, let message, let qos, let retain, let isInWindow):
            queue(session, position, message, qos, retain, isInWindow)
        case .horizon(let session, let position):
            active.delta(session).horizon = position
        case .released(let session, let position): release(session, position)
        case .finished(let session, let position): finish(session, position)
        case .session(let number, let identifier, let userName):
            lastSession = max(lastSession, number)
            active.delta(number).newSession = SegmentChanges.NewSession(
                number: number, clientIdentifier: Self.array(identifier, bytes),
                userName: userName.map { Self.array($0, bytes) })
        case .sessionRemoved(let number): removeSession(number)
        case .attached(let number):
            active.delta(number).isAttached = true
        case .detached(let number, let sinceMs):
            let delta = active.delta(number)
            delta.isAttached = false
            delta.detachedSinceMs = sinceMs
        case .subscription(let session, let filter, let qos):
            active.delta(session).subscriptions[Self.array(filter, bytes)] = .some(qos)
        case .subscriptionRemoved(let session, let filter):
            active.delta(session).subscriptions[Self.array(filter, bytes)] = .some(nil)
        case .inbound(let session, let identifier):
            active.delta(session).inbound[identifier] = true
        case .inboundRemoved(let session, let identifier):
            active.delta(session).inbound[identifier] = false
        case .retained(let number):
            guard let index = find(number) else { return }
            let message = messages[index]
            messages[index].references += 1
            let topic = Self.array(
                RecordView.Bytes(
                    offset: Int(message.topicOffset - offset), count: Int(message.topicCount)),
                bytes)
            setRetained(topic, index)
        case .retainedRemoved(let topic): setRetained(Self.array(topic, bytes), nil)
        case .will(let session, let number):
            guard let index = find(number) else { return }
            messages[index].references += 1
            setWill(session, .message(index))
        case .willRemoved(let session): setWill(session, .removed)
        case .sequence(let channel, let number):
            active.sequences[Self.array(channel, bytes)] = number
        }
    }

    /// Nothing after a group refers to its messages, so what nobody took is gone.
    private mutating func endGroup() {
        while let (_, index) = group.popLast() { dropReference(index) }
    }

    private func find(_ number: UInt64) -> UInt32? {
        var place = group.count - 1
        while place >= 0 {
            if group[place].number == number { return group[place].index }
            place -= 1
        }
        return nil
    }

    private mutating func dropReference(_ index: UInt32) {
        guard index != noIndex else { return }
        messages[index].references -= 1
        if messages[index].references == 0 { messages.remove(index) }
    }

    private static func array(
        _ range: RecordView.Bytes, _ bytes: UnsafeRawBufferPointer
    ) -> [UInt8] {
        [UInt8](bytes[range.offset..<range.offset + range.count])
    }

    // MARK: Queues

    private mutating func queue(
        _ session: UInt64, _ position: UInt64, _ number: UInt64, _ qos: UInt8, _ retain: Bool,
        _ isInWindow: Bool
    ) {
        guard let message = find(number) else { return }
        let delta = active.delta(session)
        delta.end = position + 1
        if isInWindow { delta.horizon = position + 1 }
        messages[message].references += 1
        let index = entries.insert(
            Entry(
                position: position, segment: active.number, message: message, next: noIndex,
                qos: qos, retain: retain, isReleased: false))
        active.entryCount += 1
        if let queue = queues[session] {
            entries[queue.last].next = index
            queues[session]?.last = index
        } else {
            queues[session] = Queue(first: index, last: index)
        }
    }

    private mutating func release(_ session: UInt64, _ position: UInt64) {
        guard let (index, _) = findEntry(session, position) else {
            active.delta(session).release(position)
            return
        }
        entries[index].isReleased = true
        if entries[index].segment == active.number {
            dropReference(entries[index].message)
            entries[index].message = noIndex
        } else {
            active.delta(session).release(position)
        }
    }

    private mutating func finish(_ session: UInt64, _ position: UInt64) {
        guard let (index, previous) = findEntry(session, position) else {
            active.delta(session).finish(position)
            return
        }
        if entries[index].segment != active.number { active.delta(session).finish(position) }
        remove(index, after: previous, of: session)
    }

    /// The entry of a position, and the one before it; acknowledged ones are near the front.
    private func findEntry(
        _ session: UInt64, _ position: UInt64
    ) -> (index: UInt32, previous: UInt32)? {
        guard let queue = queues[session] else { return nil }
        var previous = noIndex
        var index = queue.first
        while index != noIndex, entries[index].position <= position {
            if entries[index].position == position { return (index, previous) }
            previous = index
            index = entries[index].next
        }
        return nil
    }

    private mutating func remove(_ index: UInt32, after previous: UInt32, of session: UInt64) {
        let entry = entries[index]
        guard var queue = queues[session] else { return }
        if previous == noIndex {
            queue.first = entry.next
        } else {
            entries[previous].next = entry.next
        }
        if queue.last == index { queue.last = previous }
        queues[session] = queue.first == noIndex ? nil : queue
        dropReference(entry.message)
        entries.remove(index)
    }

    private mutating func removeSession(_ number: UInt64) {
        if let queue = queues.removeValue(forKey: number) {
            var index = queue.first
            while index != noIndex {
                let entry = entries[index]
                dropReference(entry.message)
                entries.remove(index)
                index = entry.next
            }
        }
        let delta = active.sessions.removeValue(forKey: number)
        if case .message(let index) = delta?.will { dropReference(index) }
        // A session that this segment made leaves no trace.
        if delta?.newSession == nil { active.removedSessions.append(number) }
    }

    private mutating func setRetained(_ topic: [UInt8], _ message: UInt32?) {
        if case .some(.some(let replaced)) = active.retained[topic] { dropReference(replaced) }
        active.retained[topic] = .some(message)
    }

    private mutating func setWill(_ session: UInt64, _ state: SessionDelta.WillState) {
        let delta = active.delta(session)
        if case .message(let replaced) = delta.will { dropReference(replaced) }
        delta.will = state
    }

    // MARK: Segments

    /// Ends the active segment and begins the next one; the changes are for the database.
    mutating func seal(next number: UInt64) -> SegmentChanges {
        let changes = collectChanges()
        sealed.append(Sealed(segment: active, changes: changes))
        active = Segment(number: number)
        return changes
    }

    /// The database has this segment, the oldest sealed one: its part of the overlay goes.
    mutating func applied(_ number: UInt64) {
        guard let first = sealed.first, first.segment.number == number else {
            preconditionFailure("segment \(number) applied out of turn")
        }
        sealed.removeFirst()
        for session in first.segment.sessions.keys {
            while let queue = queues[session], entries[queue.first].segment == number {
                remove(queue.first, after: noIndex, of: session)
            }
            if let delta = first.segment.sessions[session], case .message(let index) = delta.will {
                dropReference(index)
            }
        }
        for case .some(let index) in first.segment.retained.values { dropReference(index) }
    }
}
