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

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    /// By session index.
    private var waiting: [UInt32: Waiting] = [:]
    private var timers: TimerWheel

    package init(now: MonotonicTime) { timers = TimerWheel(now: now) }

    package var isEmpty: Bool { waiting.isEmpty }
    package var nextDeadline: MonotonicTime? { timers.nextDeadline }

    /// Has a session's will wait. Takes over the reference.
    package mutating func add(
        _ will: Message, of session: UInt32, expiry: UInt32?, at time: MonotonicTime
    ) {
        let timer = timers.schedule(UInt64(session), at: time)
        waiting[session] = Waiting(will: will, expiry: expiry, timer: timer)
    }

    /// Takes the will of a session whose client has come back, or that ends; the caller releases it.
    package mutating func take(_ session: UInt32) -> Message? {
        guard !waiting.isEmpty, let taken = waiting.removeValue(forKey: session) else {
            return nil
        }
        timers.cancel(taken.timer)
        return taken.will
    }

    /// The will that waits for a session.
    package func will(of session: UInt32) -> Message? { waiting[session]?.will }

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
