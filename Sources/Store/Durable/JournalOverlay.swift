import Structures

/// The content of the journal that the database does not have: the net effect of its records, in
/// memory.
///
/// Its size is bounded by the journal's, not by the number of queued messages: a queue position
/// takes some 100 bytes until its segment has been moved to the database. The committer applies
/// what is durable, seals a segment that is full, and frees its part once the database has it.
struct JournalOverlay: ~Copyable {
    /// A queue position whose record is in the journal.
    struct Entry: BitwiseCopyable {
        var position: UInt64
        var segment: UInt64
        /// ``noIndex`` if it was released in the segment that queued it.
        var message: UInt32
        /// The session's next entry.
        var next: UInt32
        /// The session that owns it.
        var session: UInt32
        var qos: UInt8
        var retain: Bool
        var isReleased: Bool
        /// Index in ``sharedFilters`` of the shared subscription that chose the session;
        /// ``noIndex`` for none.
        var shared: UInt32
    }

    struct Message: BitwiseCopyable {
        var number: UInt64
        var segment: UInt64
        var expiresAtMs: Int64
        var topicOffset: UInt32
        var topicCount: UInt32
        var payloadOffset: UInt32
        var payloadCount: UInt32
        /// Number of entries, retained messages and wills that refer to it, plus one while its
        /// group is read.
        var references: UInt32
        var qos: UInt8
        var retain: Bool
        /// Bytes of the message's identifier, which is in the record behind; 0 for none.
        var messageIDCount: UInt8 = 0
    }

    /// A session with entries, or with changes in a segment of the journal.
    struct Session: BitwiseCopyable {
        var number: UInt64
        /// Its first and last entry; entries are linked by rising position.
        var first: UInt32
        var last: UInt32
        /// Index of its changes in segment `deltaSegment`, the last one that has any.
        var delta: UInt32
        var deltaSegment: UInt64
        /// Number of segments with changes of this session.
        var deltaCount: UInt32
    }

    /// A message of the active segment. The index is valid only while the number matches.
    struct MessagePlace: BitwiseCopyable {
        var number: UInt64
        var index: UInt32
    }

    /// An entry of the active segment. The index is valid only while position and session match.
    struct EntryPlace: BitwiseCopyable {
        var position: UInt64
        var session: UInt32
        var index: UInt32
    }

    /// The changes of a segment, without queue positions and messages.
    final class Segment {
        let number: UInt64
        /// In the order in which the sessions first appeared.
        var deltas: [SessionDelta] = []
        /// Index of the message by topic; `nil` for a removed retained message.
        var retained: [[UInt8]: UInt32?] = [:]
        var facts = FactLog()
        /// Number of records that take memory, or did.
        var weight = 0
        /// Number of records that remove what earlier segments or the database have.
        var removals = 0

        init(number: UInt64) { self.number = number }
    }

    var entries = Slab<Entry>()
    var messages = Slab<Message>()
    var sessions = Slab<Session>()
    var sharedFilters = SharedFilters()
    private var sessionsByNumber = HashIndex()
    /// The last session that was looked up, since records of one session mostly follow each other.
    private var recent: (number: UInt64, index: UInt32) = (0, noIndex)
    /// The segment that is written to.
    var active: Segment
    /// Full segments that the database does not have yet; oldest first.
    var sealed: [Segment] = []
    var lastSession: UInt64
    var lastMessage: UInt64
    /// Messages of the active segment in their order. Those of the current group begin at
    /// `groupStart`.
    var activeMessages = GrowableBuffer<MessagePlace>()
    var groupStart = 0
    /// Entries of the active segment in their order.
    var activeEntries = GrowableBuffer<EntryPlace>()

    /// For records of version 4.
    var formerOwners = FormerOwners(nil)

    init(activeSegment: UInt64, lastSession: UInt64, lastMessage: UInt64) {
        active = Segment(number: activeSegment)
        self.lastSession = lastSession
        self.lastMessage = lastMessage
    }

    /// Number of the active segment's records that take memory until it is moved. A limit on it
    /// bounds the memory.
    var activeWeight: Int { active.weight }

    /// Number of the active segment's records that remove what was stored before it.
    var activeRemovals: Int { active.removals }

    /// Number of sessions that the active segment changes.
    var activeSessions: Int { active.deltas.count }

    /// True when the active segment has no changes.
    var isActiveEmpty: Bool {
        active.deltas.isEmpty && active.retained.isEmpty && active.facts.isEmpty
    }

    // MARK: Sessions

    func findSession(_ number: UInt64) -> UInt32? {
        if recent.number == number, recent.index != noIndex { return recent.index }
        return sessionsByNumber.find(Self.hash(number)) { sessions[$0].number == number }
    }

    mutating func session(_ number: UInt64) -> UInt32 {
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

    /// Spreads consecutive numbers over the table, whose removals walk through neighbouring slots.
    static func hash(_ number: UInt64) -> UInt64 {
        (number &* 0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// Removes a session of which nothing is left in the journal.
    mutating func removeIfUnused(_ index: UInt32) {
        let session = sessions[index]
        guard session.first == noIndex, session.deltaCount == 0 else { return }
        sessionsByNumber.remove(Self.hash(session.number), index)
        sessions.remove(index)
        if recent.index == index { recent.index = noIndex }
    }

    mutating func delta(of number: UInt64) -> SessionDelta {
        delta(ofRecord: session(number))
    }

    /// The active segment's changes of a session.
    mutating func delta(ofRecord index: UInt32) -> SessionDelta {
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

    // MARK: Segments

    /// Ends the active segment and begins the next one. Returns the changes, which the database
    /// wants sorted.
    mutating func seal(next number: UInt64) -> SegmentChanges {
        let changes = collectChanges()
        sealed.append(active)
        begin(number)
        return changes
    }

    /// Begins the next segment after one without changes, which the database need not get.
    mutating func skip(to number: UInt64) {
        precondition(isActiveEmpty, "segment \(active.number) skipped with changes")
        begin(number)
    }

    mutating func begin(_ number: UInt64) {
        active = Segment(number: number)
        activeMessages.removeAll()
        activeEntries.removeAll()
        groupStart = 0
    }

    /// Frees the part of the oldest sealed segment, which the database has now.
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

    /// Frees the memory of a past load, once the database has all of it.
    mutating func compact() {
        guard active.weight == 0, activeEntries.isEmpty, activeMessages.isEmpty,
            entries.count == 0, messages.count == 0, sessions.count == 0
        else { return }
        // Nothing holds an index into these tables any more.
        entries = Slab()
        messages = Slab()
        sessions = Slab()
        sharedFilters = SharedFilters()
        activeEntries = GrowableBuffer()
        activeMessages = GrowableBuffer()
        recent = (0, noIndex)
    }
}
