import BrokerAPI
import Structures

/// The pace of a drain: an operator has all connections closed, evenly, before maintenance.
///
/// ```
/// off ── start ──> draining ── the last connection has ended ──> drained
///  ^                  │                                             │
///  └───── end ────────┴─────────────────── end ─────────────────────┘
/// ```
///
/// The time since ``Pace/begin`` says how many connections are due by now. What a late turn has missed
/// is not made up for beyond a tenth of a second, so that clients do not come to another broker in
/// bursts.
package struct ConnectionDrain {
    private struct Pace {
        var perSecond: UInt64
        /// The start, or the last change of the rate.
        var begin: MonotonicTime
        /// Connections that were due since then, closed or not.
        var spent: UInt64 = 0

        /// Connections due at a time.
        func due(at now: MonotonicTime) -> UInt64 {
            now.milliseconds(since: begin) * perSecond / 1_000
        }
    }

    private enum State {
        case off
        case draining(Pace)
        case drained(perSecond: Int)
    }

    /// The most connections that one turn closes.
    private static let mostPerTurn: UInt64 = 256

    private var state = State.off
    package private(set) var startedAtMs: Int64 = 0
    /// Connections that the drain has closed.
    package private(set) var closed = 0
    /// Where clients of MQTT 5.0 are sent, as DISCONNECT and CONNACK say it; `nil` for nowhere.
    package private(set) var serverReference: String?
    /// The next connection to look at.
    package private(set) var place: UInt32 = 0

    /// True from the start to the end: nobody may connect.
    package var isActive: Bool {
        if case .off = state { false } else { true }
    }

    /// Begins a drain, or goes on with another rate and another reference.
    package mutating func start(
        perSecond: Int, serverReference: String?, now: MonotonicTime, wallClockMs: Int64
    ) {
        self.serverReference = serverReference
        if !isActive {
            startedAtMs = wallClockMs
            closed = 0
            place = 0
        }
        state = .draining(Pace(perSecond: UInt64(max(1, perSecond)), begin: now))
    }

    package mutating func end() { state = .off }

    /// How many connections to close now, at most ``mostPerTurn``.
    package mutating func due(at now: MonotonicTime) -> Int {
        guard case .draining(var pace) = state else { return 0 }
        let due = pace.due(at: now)
        let kept = max(1, pace.perSecond / 10)
        pace.spent = max(pace.spent, due - min(due, kept))
        state = .draining(pace)
        return Int(min(due - min(due, pace.spent), Self.mostPerTurn))
    }

    /// So many connections were closed, and the search goes on at `next`.
    package mutating func note(closed count: Int, next: UInt32) {
        guard case .draining(var pace) = state else { return }
        closed += count
        place = next
        pace.spent += UInt64(count)
        state = .draining(pace)
    }

    /// The last connection has ended; false if that is known, or no drain is under way.
    package mutating func finish() -> Bool {
        guard case .draining(let pace) = state else { return false }
        state = .drained(perSecond: Int(pace.perSecond))
        return true
    }

    /// When the next connection is due; `nil` when none is to be closed.
    package var deadline: MonotonicTime? {
        guard case .draining(let pace) = state else { return nil }
        let wait = ((pace.spent + 1) * 1_000 + pace.perSecond - 1) / pace.perSecond
        return pace.begin.advanced(byMilliseconds: wait)
    }

    /// The status of a broker with so many connections left.
    package func status(connections: Int) -> DrainStatus {
        switch state {
        case .off: DrainStatus(connections: connections)
        case .draining(let pace):
            DrainStatus(
                isDrained: false, connections: connections, closed: closed,
                perSecond: Int(pace.perSecond), startedAtMs: startedAtMs,
                serverReference: serverReference)
        case .drained(let perSecond):
            DrainStatus(
                isDrained: true, connections: connections, closed: closed, perSecond: perSecond,
                startedAtMs: startedAtMs, serverReference: serverReference)
        }
    }
}
