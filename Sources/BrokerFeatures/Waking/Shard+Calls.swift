import BrokerAPI
import BrokerCore
import Structures

/// Calls and talks, which nobody waits for any more when they come late.
extension Shard {
    /// The least time in which a call is repeated that its push service does not take.
    private static var leastCallMilliseconds: Int64 { 30_000 }

    /// The wall clock in units of 8,192 milliseconds; they come again after 6 days.
    private var callUnits: UInt16 { UInt16(truncatingIfNeeded: context.wallClockMs >> 13) }

    /// Notes that a message has come which asks for a call.
    mutating func noteCall(_ wake: UInt32) {
        features.wakes[wake].called = callUnits
        features.wakes[wake].skipsCalls = false
    }

    /// Has the queue say what is to be told instead of a call that comes too late: what it took along.
    mutating func skipLateCall(_ wake: UInt32) {
        let owed = features.wakes[wake]
        guard owed.kind.isCall, !owed.skipsCalls, owed.called != 0 else { return }
        let rule = owed.rule.flatMap { features.wakeRules[$0] }
        let limits = context.limits
        // So long it may wait before it is due.
        let window = max(
            limits.wakeMergeMilliseconds, limits.wakeReconnectMilliseconds,
            limits.wakeUnansweredMilliseconds)
        let most = max(1_000 * (rule?.expiresInSeconds ?? 0), Self.leastCallMilliseconds)
        // A call is not late before the whole of its last unit is over.
        let age = (Int64(callUnits &- owed.called) - 1) << 13
        guard age > most + Int64(clamping: window) else { return }
        features.wakeCounters.expired += 1
        features.wakes[wake].skipsCalls = true
        features.wakes[wake].needsReading = true
    }

    /// True when a message of a queue that is read asks for no more than a call that comes too late.
    func isSkipped(_ kind: WakeKind, of wake: UInt32) -> Bool {
        kind.isCall && features.wakes[wake].skipsCalls
    }
}
