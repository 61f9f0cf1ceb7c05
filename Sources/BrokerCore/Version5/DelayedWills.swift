import MQTTCore
import Structures

/// Wills that wait after the end of their connections: for their delay, for the end of the session, or
/// for the client, whose return deletes them [MQTT-3.1.3-9].
package struct DelayedWills: ~Copyable {
    private struct Waiting {
        let will: Message
        let expiry: UInt32?
        let timer: UInt32
    }

    /// A will whose time has come.
    package struct Due {
        package let will: Message
        /// Seconds between the publication and the end of the message; `nil` for one that stays.
        package let expiry: UInt32?
        /// The session, which may have ended.
        package let session: UInt64
        package let clientID: [UInt8]
        /// The session's index; `nil` when it has ended, and the will was allowed before.
        package let index: UInt32?
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    /// By session index.
    private var waiting: [UInt32: Waiting] = [:]
    private var timers: TimerWheel
    /// Wills of sessions that have ended, to be published in this turn.
    private var ended: [Due] = []

    package init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    package var isEmpty: Bool { waiting.isEmpty && ended.isEmpty }
    package var count: Int { waiting.count }
    /// True when wills of ended sessions are to be published.
    package var hasEnded: Bool { !ended.isEmpty }
    package var nextDeadline: MonotonicTime? { timers.nextDeadline }

    package func contains(_ session: UInt32) -> Bool { waiting[session] != nil }

    /// Has a session's will wait. Takes over the reference.
    package mutating func add(
        _ will: Message, of session: UInt32, expiry: UInt32?, at time: MonotonicTime
    ) {
        let timer = timers.schedule(UInt64(session), at: time)
        waiting[session] = Waiting(will: will, expiry: expiry, timer: timer)
    }

    /// Takes the will of a session whose client has come back; the caller releases it.
    package mutating func take(_ session: UInt32) -> Message? {
        guard !waiting.isEmpty, let taken = waiting.removeValue(forKey: session) else {
            return nil
        }
        timers.cancel(taken.timer)
        return taken.will
    }

    /// Has the will of a session that ends published in this turn, if it `isAllowed`; else the caller
    /// gets it back, to release it.
    package mutating func end(
        _ session: UInt32, number: UInt64, clientID: [UInt8], isAllowed: Bool
    ) -> Message? {
        guard let taken = waiting.removeValue(forKey: session) else { return nil }
        timers.cancel(taken.timer)
        guard isAllowed else { return taken.will }
        ended.append(
            Due(
                will: taken.will, expiry: taken.expiry, session: number, clientID: clientID,
                index: nil))
        return nil
    }

    /// The will that waits for a session.
    package func will(of session: UInt32) -> Message? { waiting[session]?.will }

    /// The next will of an ended session.
    package mutating func popEnded() -> Due? { ended.isEmpty ? nil : ended.removeFirst() }

    /// The next session whose will's delay is over, with the will; the caller releases it.
    package mutating func popDue(
        now: MonotonicTime
    ) -> (session: UInt32, will: Message, expiry: UInt32?)? {
        while let payload = timers.popExpired(now: now) {
            let session = UInt32(truncatingIfNeeded: payload)
            guard let due = waiting.removeValue(forKey: session) else { continue }
            return (session, due.will, due.expiry)
        }
        return nil
    }
}
