import Authorization
import Structures

/// The logins of connections that hold more than a user name: allowed topics, or an end.
///
/// A side table, since only clients with tokens need it: about 120 bytes each.
package struct Logins: ~Copyable {
    private struct Entry {
        var generation: UInt32
        /// ``noIndex`` for a login without an end.
        var timer: UInt32
        var endsAtMs: Int64
        var allowance: TopicAllowance?
    }

    /// By connection index.
    private var entries: [UInt32: Entry] = [:]
    private var timers: TimerWheel

    package init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    package var isEmpty: Bool { entries.isEmpty }

    /// Keeps a connection's login until ``remove(_:)``.
    package mutating func add(
        _ handle: Handle, _ login: Login, now: MonotonicTime, wallClockMs: Int64
    ) {
        guard login.allowance != nil || login.endsAtMs != nil else { return }
        var entry = Entry(
            generation: handle.generation, timer: noIndex, endsAtMs: login.endsAtMs ?? .max,
            allowance: login.allowance)
        if let endsAtMs = login.endsAtMs {
            entry.timer = timers.schedule(
                handle.packed, at: Self.time(endsAtMs, now: now, wallClockMs: wallClockMs))
        }
        if let former = entries.updateValue(entry, forKey: handle.index), former.timer != noIndex {
            timers.cancel(former.timer)
        }
    }

    /// The topics that a connection's login allows.
    package func allowance(of handle: Handle) -> TopicAllowance? {
        guard let entry = entries[handle.index], entry.generation == handle.generation else {
            return nil
        }
        return entry.allowance
    }

    /// Forgets a closing connection, with or without an entry.
    package mutating func remove(_ handle: Handle) {
        guard let entry = entries[handle.index], entry.generation == handle.generation else {
            return
        }
        if entry.timer != noIndex { timers.cancel(entry.timer) }
        entries[handle.index] = nil
    }

    /// The next connection whose login has ended; its entry stays until ``remove(_:)``.
    package mutating func popExpired(now: MonotonicTime, wallClockMs: Int64) -> Handle? {
        while let payload = timers.popExpired(now: now) {
            let handle = Handle(packed: payload)
            guard let entry = entries[handle.index], entry.generation == handle.generation else {
                continue
            }
            // The wall clock, by which tokens end, may have been set back meanwhile.
            guard entry.endsAtMs <= wallClockMs else {
                entries[handle.index]?.timer = timers.schedule(
                    payload, at: Self.time(entry.endsAtMs, now: now, wallClockMs: wallClockMs))
                continue
            }
            entries[handle.index]?.timer = noIndex
            return handle
        }
        return nil
    }

    package var nextDeadline: MonotonicTime? { timers.nextDeadline }

    private static func time(
        _ endsAtMs: Int64, now: MonotonicTime, wallClockMs: Int64
    ) -> MonotonicTime {
        now.advanced(byMilliseconds: UInt64(max(0, endsAtMs - wallClockMs)))
    }
}
