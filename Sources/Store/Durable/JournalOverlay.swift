import Structures

/// What the journal holds and the database does not: the net effect of its records, in memory.
///
/// Bounded by the journal's size, not by what waits in queues: a position takes some 100 bytes until
/// its segment has been moved to the database. The store's thread feeds it what is on the disk, seals
/// a segment when it is full, and lets its part go when the database has it.
struct JournalOverlay: ~Copyable {
    /// A queue position whose record the journal holds.
    struct Entry: BitwiseCopyable {
        var position: UInt64
        var segment: UInt64
        /// ``noIndex`` if it was released in its own segment.
        var message: UInt32
        /// The session's next entry.
        var next: UInt32
        /// Whose it is.
        var session: UInt32
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
        /// Entries, retained values and wills, and the group while it is read.
        var references: UInt32
        var qos: UInt8
        var retain: Bool
    }

    /// A session that has entries, or that a segment in the journal changes.
    struct Session: BitwiseCopyable {
        var number: UInt64
        /// Its entries, by rising position.
        var first: UInt32
        var last: UInt32
        /// Its delta in the segment of this number, which is the last that has one.
        var delta: UInt32
        var deltaSegment: UInt64
        /// Segments that have a delta of it.
        var deltaCount: UInt32
    }

    /// A message of the active segment; the index is its own only while the number matches.
    struct MessagePlace: BitwiseCopyable {
        var number: UInt64
        var index: UInt32
    }

    /// An entry of the active segment; the index is its own only while the rest matches.
    struct EntryPlace: BitwiseCopyable {
        var position: UInt64
        var session: UInt32
        var index: UInt32
    }

    /// A segment's changes apart from queue positions and messages.
    final class Segment {
        let number: UInt64
        /// In the order in which the sessions came.
        var deltas: [SessionDelta] = []
        /// The index of the message, or `nil` for none any more.
        var retained: [[UInt8]: UInt32?] = [:]
        var sequences: [[UInt8]: UInt64] = [:]
        /// Records that take memory, whether they still do or not.
        var weight = 0

        init(number: UInt64) { self.number = number }
    }

    private(set) var entries = Slab<Entry>()
    private(set) var messages = Slab<Message>()
    private(set) var sessions = Slab<Session>()
    private var sessionsByNumber = HashIndex()
    /// The last session that was looked up: records mostly come in runs.
    private var recent: (number: UInt64, index: UInt32) = (0, noIndex)
    /// The one that is written to.
    private(set) var active: Segment
    /// Full, and not in the database yet; oldest first.
    private(set) var sealed: [Segment] = []
    private(set) var lastSession: UInt64
    private(set) var lastMessage: UInt64
    /// Messages of the active segment, in the order in which they came; those of the group that is
    /// read are behind `groupStart`.
    private(set) var activeMessages = GrowableBuffer<MessagePlace>()
    private var groupStart = 0
    /// Entries of the active segment, in the order in which they came.
    private(set) var activeEntries = GrowableBuffer<EntryPlace>()

    init(activeSegment: UInt64, lastSession: UInt64, lastMessage: UInt64) {
        active = Segment(number: activeSegment)
        self.lastSession = lastSession
        self.lastMessage = lastMessage
    }

    /// Records of the active segment that take memory until it is moved: what bounds the memory.
    var activeWeight: Int { active.weight }

    /// Whether the active segment has changed nothing.
    var isActiveEmpty: Bool {
        active.deltas.isEmpty && active.retained.isEmpty && active.sequences.isEmpty
    }

    // MARK: Records

    /// Applies the records of whole groups, whose first byte lies at `offset` of the active segment's
    /// file.
    ///
    /// - Throws: when the bytes are not what a ``WriteBatch`` writes; the overlay is of no use then.
    mutating func apply(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt32
    ) throws(DamagedRecord) {
        var reader = RecordReader(bytes)
        var start = 0
        while let record = try reader.next() {
            guard apply(record, bytes, offset) else { throw DamagedRecord(offset: start) }
            start = reader.offset
        }
        endGroup()
    }

    /// False when the record contradicts those before it.
    private mutating func apply(
        _ record: RecordView, _ bytes: UnsafeRawBufferPointer, _ offset: UInt32
    ) -> Bool {
        switch record {
        case .commit: endGroup()
        case .message(let number, let topic, let payload, let qos, let retain, let expiresAtMs):
            // The database looks messages up by number.
            let place = activeMessages.count - 1
            guard place < 0 || activeMessages[place].number < number else { return false }
            lastMessage = max(lastMessage, number)
            let index = messages.insert(
                Message(
                    number: number, segment: active.number, expiresAtMs: expiresAtMs,
                    topicOffset: offset + UInt32(topic.offset), topicCount: UInt32(topic.count),
                    payloadOffset: offset + UInt32(payload.offset),
                    payloadCount: UInt32(payload.count), references: 1, qos: qos,
                    retain: retain))
            activeMessages.append(MessagePlace(number: number, index: index))
        case .queued(let session, let position, let message, let qos, let retain, let isInWindow):
            return queue(session, position, message, qos, retain, isInWindow)
        case .horizon(let session, let position):
            delta(of: session).horizon = position
        case .released(let session, let position): release(session, position)
        case .finished(let session, let position): finish(session, position)
        case .session(let number, let identifier, let userName):
            lastSession = max(lastSession, number)
            delta(of: number).newSession = SegmentChanges.NewSession(
                number: number, clientIdentifier: Self.array(identifier, bytes),
                userName: userName.map { Self.array($0, bytes) })
        case .sessionRemoved(let number): removeSession(number)
        case .attached(let number):
            delta(of: number).isAttached = true
        case .detached(let number, let sinceMs):
            let delta = delta(of: number)
            delta.isAttached = false
            delta.detachedSinceMs = sinceMs
        case .subscription(let session, let filter, let qos):
            setSubscription(session, Self.array(filter, bytes), qos)
        case .subscriptionRemoved(let session, let filter):
            setSubscription(session, Self.array(filter, bytes), nil)
        case .inbound(let session, let identifier):
            setInbound(session, identifier, true)
        case .inboundRemoved(let session, let identifier):
            setInbound(session, identifier, false)
        case .retained(let number):
            guard let index = find(number) else { return false }
            let message = messages[index]
            messages[index].references += 1
            let topic = Self.array(
                RecordView.Bytes(
                    offset: Int(message.topicOffset - offset), count: Int(message.topicCount)),
                bytes)
            setRetained(topic, index)
        case .retainedRemoved(let topic): setRetained(Self.array(topic, bytes), nil)
        case .will(let session, let number):
            guard let index = find(number) else { return false }
            messages[index].references += 1
            setWill(session, .message(index))
        case .willRemoved(let session): setWill(session, .removed)
        case .sequence(let channel, let number):
            active.weight += 1
            active.sequences[Self.array(channel, bytes)] = number
        }
        return true
    }

    /// Nothing after a group refers to its messages, so what nobody took is gone.
    private mutating func endGroup() {
        while groupStart < activeMessages.count {
            dropReference(activeMessages[groupStart].index)
            groupStart += 1
        }
    }

    /// A message of the group that is read.
    private func find(_ number: UInt64) -> UInt32? {
        var place = activeMessages.count - 1
        while place >= groupStart {
            if activeMessages[place].number == number { return activeMessages[place].index }
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

    // MARK: Sessions

    func findSession(_ number: UInt64) -> UInt32? {
        if recent.number == number, recent.index != noIndex { return recent.index }
        return sessionsByNumber.find(Self.hash(number)) { sessions[$0].number == number }
    }

    private mutating func session(_ number: UInt64) -> UInt32 {
        if let index = findSession(number) {
            recent = (number, index)
            return index
        }
        let index = sessions.insert(
            Session(
                number: number, first: noIndex, last: noIndex, delta: noIndex, deltaSegment: 0,
                deltaCount: 0))
        sessionsByNumber.insert(Self.hash(number), index)
        recent = (number, index)
        return index
    }

    /// Numbers follow each other; neighbours must not be neighbours in the table, whose removals walk
    /// through them.
    private static func hash(_ number: UInt64) -> UInt64 {
        (number &* 0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// Forgets a session that has nothing in the journal any more.
    private mutating func removeIfUnused(_ index: UInt32) {
        let session = sessions[index]
        guard session.first == noIndex, session.deltaCount == 0 else { return }
        sessionsByNumber.remove(Self.hash(session.number), index)
        sessions.remove(index)
        if recent.index == index { recent.index = noIndex }
    }

    private mutating func delta(of number: UInt64) -> SessionDelta {
        delta(ofRecord: session(number))
    }

    /// What the active segment changes about a session.
    private mutating func delta(ofRecord index: UInt32) -> SessionDelta {
        if sessions[index].delta != noIndex, sessions[index].deltaSegment == active.number {
            return active.deltas[Int(sessions[index].delta)]
        }
        let delta = SessionDelta(session: sessions[index].number, record: index)
        delta.older = SessionDelta.Place(
            segment: sessions[index].deltaSegment, index: sessions[index].delta)
        sessions[index].delta = UInt32(active.deltas.count)
        sessions[index].deltaSegment = active.number
        sessions[index].deltaCount += 1
        active.deltas.append(delta)
        active.weight += 1
        return delta
    }

    private mutating func removeSession(_ number: UInt64) {
        let index = session(number)
        var entry = sessions[index].first
        while entry != noIndex {
            let next = entries[entry].next
            removeEntry(entry)
            entry = next
        }
        sessions[index].first = noIndex
        sessions[index].last = noIndex
        let delta = delta(ofRecord: index)
        if case .message(let message) = delta.will { dropReference(message) }
        delta.will = .unchanged
        delta.isRemoved = true
    }

    private mutating func setSubscription(_ session: UInt64, _ filter: [UInt8], _ qos: UInt8?) {
        active.weight += 1
        delta(of: session).subscriptions[filter] = .some(qos)
    }

    private mutating func setInbound(
        _ session: UInt64, _ identifier: UInt16, _ isPresent: Bool
    ) {
        delta(of: session).inbound[identifier] = isPresent
    }

    private mutating func setRetained(_ topic: [UInt8], _ message: UInt32?) {
        active.weight += 1
        if case .some(.some(let replaced)) = active.retained[topic] { dropReference(replaced) }
        active.retained[topic] = .some(message)
    }

    private mutating func setWill(_ session: UInt64, _ state: SessionDelta.WillState) {
        let delta = delta(of: session)
        if case .message(let replaced) = delta.will { dropReference(replaced) }
        delta.will = state
    }

    // MARK: Queues

    private mutating func queue(
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
                session: session, qos: qos, retain: retain, isReleased: false))
        activeEntries.append(EntryPlace(position: position, session: session, index: index))
        if last == noIndex {
            sessions[session].first = index
        } else {
            entries[last].next = index
        }
        sessions[session].last = index
        return true
    }

    private mutating func release(_ number: UInt64, _ position: UInt64) {
        let session = session(number)
        guard let (index, _) = findEntry(session, position) else {
            delta(ofRecord: session).release(position)
            return
        }
        entries[index].isReleased = true
        if entries[index].segment == active.number {
            dropReference(entries[index].message)
            entries[index].message = noIndex
        } else {
            delta(ofRecord: session).release(position)
        }
    }

    private mutating func finish(_ number: UInt64, _ position: UInt64) {
        let session = session(number)
        guard let (index, previous) = findEntry(session, position) else {
            delta(ofRecord: session).finish(position)
            return
        }
        let entry = entries[index]
        if entry.segment != active.number { delta(ofRecord: session).finish(position) }
        if previous == noIndex {
            sessions[session].first = entry.next
        } else {
            entries[previous].next = entry.next
        }
        if sessions[session].last == index { sessions[session].last = previous }
        removeEntry(index)
    }

    private mutating func removeEntry(_ index: UInt32) {
        dropReference(entries[index].message)
        // No segment's any more, whatever still knows the index.
        entries[index].segment = 0
        entries.remove(index)
    }

    /// The entry of a position, and the one before it; acknowledged ones are near the front.
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

    // MARK: Segments

    /// Ends the active segment and begins the next one; the changes are for the database, which wants
    /// them sorted.
    mutating func seal(next number: UInt64) -> SegmentChanges {
        let changes = collectChanges()
        sealed.append(active)
        begin(number)
        return changes
    }

    /// Begins the next segment after one that has changed nothing, and that the database need not
    /// hear of.
    mutating func skip(to number: UInt64) {
        precondition(isActiveEmpty, "segment \(active.number) skipped with changes")
        begin(number)
    }

    private mutating func begin(_ number: UInt64) {
        active = Segment(number: number)
        activeMessages.removeAll()
        activeEntries.removeAll()
        groupStart = 0
    }

    /// The database has this segment, the oldest sealed one: its part of the overlay goes.
    mutating func applied(_ number: UInt64) {
        guard let first = sealed.first, first.number == number else {
            preconditionFailure("segment \(number) applied out of turn")
        }
        sealed.removeFirst()
        for delta in first.deltas {
            let session = delta.record
            var index = sessions[session].first
            while index != noIndex, entries[index].segment == number {
                let next = entries[index].next
                removeEntry(index)
                index = next
            }
            sessions[session].first = index
            if index == noIndex { sessions[session].last = noIndex }
            if case .message(let message) = delta.will { dropReference(message) }
            sessions[session].deltaCount -= 1
            removeIfUnused(session)
        }
        for case .some(let index) in first.retained.values { dropReference(index) }
    }
}
