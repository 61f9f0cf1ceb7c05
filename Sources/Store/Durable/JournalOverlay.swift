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
        /// The shared subscription that it came by, in ``sharedFilters``; ``noIndex`` for none.
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

    var entries = Slab<Entry>()
    var messages = Slab<Message>()
    var sessions = Slab<Session>()
    var sharedFilters = SharedFilters()
    private var sessionsByNumber = HashIndex()
    /// The last session that was looked up: records mostly come in runs.
    private var recent: (number: UInt64, index: UInt32) = (0, noIndex)
    /// The one that is written to.
    var active: Segment
    /// Full, and not in the database yet; oldest first.
    var sealed: [Segment] = []
    var lastSession: UInt64
    var lastMessage: UInt64
    /// Messages of the active segment, in the order in which they came; those of the group that is
    /// read are behind `groupStart`.
    var activeMessages = GrowableBuffer<MessagePlace>()
    var groupStart = 0
    /// Entries of the active segment, in the order in which they came.
    var activeEntries = GrowableBuffer<EntryPlace>()

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

    /// Numbers follow each other; neighbours must not be neighbours in the table, whose removals walk
    /// through them.
    static func hash(_ number: UInt64) -> UInt64 {
        (number &* 0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// Forgets a session that has nothing in the journal any more.
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

    /// What the active segment changes about a session.
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

    mutating func begin(_ number: UInt64) {
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

    /// Gives back the memory that a load has needed, once the database has all of it.
    mutating func compact() {
        guard active.weight == 0, activeEntries.isEmpty, activeMessages.isEmpty,
            entries.count == 0, messages.count == 0, sessions.count == 0
        else { return }
        // Nothing holds an index into them.
        entries = Slab()
        messages = Slab()
        sessions = Slab()
        sharedFilters = SharedFilters()
        activeEntries = GrowableBuffer()
        activeMessages = GrowableBuffer()
        recent = (0, noIndex)
    }
}
