import MQTTCore
import Structures

/// When queued and retained messages expire, and the sessions whose window that has emptied.
///
/// An expiring message takes 20 bytes for each queue that it waits in, wherever its content is; others
/// take none. An entry is not taken out when its message leaves before its time: see ``ExpiryWheel``.
package struct Expiries: ~Copyable {
    /// What an entry that came out is about.
    package enum Step {
        /// The message at this position of a session's queue. `isDue` is false for an entry that is
        /// only moved.
        case queued(ExpiryWheel.Entry, isDue: Bool)
        /// The message of this record of the retained ones.
        case retained(ExpiryWheel.Entry, isDue: Bool)
        /// One whose time has not come.
        case early
    }

    /// Expired messages leave so often, if there are any, and at once when they would be in the way
    /// of others.
    private static let intervalMilliseconds: UInt64 = 250
    /// The wall clock may be set, so it is compared at least so often.
    private static let longestWaitMilliseconds: Int64 = 1_000
    /// Queues that are read at the same time.
    private static let mostUnderWay = 4

    private var queued: ExpiryWheel
    private var retained: ExpiryWheel
    private var sweptAt = MonotonicTime(milliseconds: 0)
    /// True when the last sweep has left something.
    private var hasMore = false
    /// Sessions with a client whose window may be empty, while the store has more.
    private var starved: [Handle] = []
    /// Sessions whose queues are to be read, and those that are, by number.
    private var unsure: [Handle] = []
    private var underWay: [UInt64: (session: Handle, sinceMs: Int64)] = [:]
    /// Sessions whose waiting messages were moved over holes in memory, so that entries name former
    /// positions, by number: the UNIX time in milliseconds at which the queue was looked through last.
    private var moved: [UInt64: Int64] = [:]

    package init(wallClockMs: Int64, pool: BytePool) {
        queued = ExpiryWheel(atMs: wallClockMs, pool: pool)
        retained = ExpiryWheel(atMs: wallClockMs, pool: pool)
    }

    /// Entries for queued messages, and for retained ones.
    package var count: (queued: Int, retained: Int) { (queued.count, retained.count) }
    package var isEmpty: Bool { queued.isEmpty && retained.isEmpty }

    // MARK: Adding

    /// Notes when the message at a position of a session's queue expires, a UNIX time in
    /// milliseconds; `bytes` are those that the queue counts for it.
    package mutating func add(
        _ session: UInt32, _ number: UInt64, at position: UInt64, bytes: Int, expiresAtMs: Int64
    ) {
        queued.add(
            ExpiryWheel.Entry(
                place: session, number: UInt32(truncatingIfNeeded: number),
                position: UInt32(truncatingIfNeeded: position),
                bytes: bytes), atMs: expiresAtMs)
    }

    /// Notes when the message of a record of the retained ones expires.
    package mutating func add(retained record: UInt32, expiresAtMs: Int64) {
        retained.add(ExpiryWheel.Entry(place: record), atMs: expiresAtMs)
    }

    package mutating func putBack(_ step: Step) {
        switch step {
        case .queued(let entry, _): queued.putBack(entry)
        case .retained(let entry, _): retained.putBack(entry)
        case .early: return
        }
    }

    // MARK: Sweeping

    private var mustRead: Bool { !unsure.isEmpty && underWay.count < Self.mostUnderWay }

    /// True when a sweep of this turn has work.
    @inline(__always)
    package func mustSweep(at now: MonotonicTime) -> Bool {
        !starved.isEmpty || mustRead
            || !isEmpty
                && (hasMore
                    || now >= sweptAt.advanced(byMilliseconds: Self.intervalMilliseconds))
    }

    /// The next entry that is due or moved at a UNIX time in milliseconds. With `isExact`
    /// ``restoreEarly()`` has to follow the last one.
    package mutating func next(atMs wallClock: Int64, isExact: Bool) -> Step? {
        switch queued.next(atMs: wallClock, isExact: isExact) {
        case .due(let entry): return .queued(entry, isDue: true)
        case .moved(let entry): return .queued(entry, isDue: false)
        case .early: return .early
        case .nothing: break
        }
        switch retained.next(atMs: wallClock, isExact: isExact) {
        case .due(let entry): return .retained(entry, isDue: true)
        case .moved(let entry): return .retained(entry, isDue: false)
        case .early: return .early
        case .nothing: return nil
        }
    }

    /// Puts entries back whose time has not come.
    package mutating func restoreEarly() {
        queued.restoreEarly()
        retained.restoreEarly()
    }

    /// Notes the end of a turn's sweep, and whether it has left something.
    package mutating func noteSweep(at now: MonotonicTime, hasMore: Bool) {
        sweptAt = now
        self.hasMore = hasMore
    }

    /// The time of the next sweep; `nil` without entries.
    package func deadline(at now: MonotonicTime, wallClockMs: Int64) -> MonotonicTime? {
        guard !hasMore, starved.isEmpty, !mustRead else { return now }
        var nextMs = Int64.max
        if let ms = queued.nextMs(atMs: wallClockMs) { nextMs = ms }
        if let ms = retained.nextMs(atMs: wallClockMs) { nextMs = min(nextMs, ms) }
        guard nextMs != .max else { return nil }
        let wait = min(max(nextMs - wallClockMs, 0), Self.longestWaitMilliseconds)
        return max(
            now.advanced(byMilliseconds: UInt64(wait)),
            sweptAt.advanced(byMilliseconds: Self.intervalMilliseconds))
    }

    // MARK: Moved messages

    /// Notes that messages of a session have got other positions.
    package mutating func noteMoved(_ number: UInt64) { moved[number] = moved[number] ?? .min }

    /// True when entries of a session may name former positions.
    package func hasMoved(_ number: UInt64) -> Bool { !moved.isEmpty && moved[number] != nil }

    /// True when the queue of such a session has not been looked through at this time; it counts as
    /// looked through from now on.
    package mutating func mustLookThrough(_ number: UInt64, atMs wallClock: Int64) -> Bool {
        guard let last = moved[number], last != wallClock else { return false }
        moved[number] = wallClock
        return true
    }

    /// Forgets a session whose queue is empty or gone.
    package mutating func forgetMoved(_ number: UInt64) {
        if !moved.isEmpty { moved[number] = nil }
    }

    // MARK: Emptied windows

    /// Has ``takeStarved()`` return a session.
    package mutating func noteStarved(_ session: Handle) {
        if starved.last != session { starved.append(session) }
    }

    package mutating func takeStarved() -> [Handle] { takeAll(&starved) }

    // MARK: Messages that count as perhaps sent

    /// Has the queue of an offline client read, of which more may have been sent, as far as the store
    /// knows, than can have been.
    package mutating func noteUnsure(_ session: Handle) {
        if unsure.last != session { unsure.append(session) }
    }

    /// The next session whose queue is read, while few are.
    package mutating func nextUnsure() -> Handle? {
        underWay.count < Self.mostUnderWay ? unsure.popLast() : nil
    }

    /// Notes that a session's queue is being read, by number; `sinceMs` tells whether its client has
    /// come back since.
    package mutating func beginReading(_ number: UInt64, _ session: Handle, sinceMs: Int64) {
        underWay[number] = (session, sinceMs)
    }

    package mutating func endReading(_ number: UInt64) -> (session: Handle, sinceMs: Int64)? {
        underWay.removeValue(forKey: number)
    }
}
