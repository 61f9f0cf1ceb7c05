import MQTTCore

/// Messages queued and in flight for all sessions together.
struct SessionTotals {
    private(set) var waiting = 0
    private(set) var waitingBytes = 0
    private(set) var inFlight = 0

    /// Replaces one queue's share after a change.
    mutating func replace(_ before: OutboundQueue, by after: OutboundQueue) {
        waiting += Int(after.waiting) - Int(before.waiting)
        waitingBytes += after.waitingBytes - before.waitingBytes
        inFlight += Int(after.inFlight) - Int(before.inFlight)
    }

    /// Counts a message that enters a queue.
    mutating func queued(bytes: Int) {
        waiting += 1
        waitingBytes += bytes
    }

    /// Counts a message that leaves a queue.
    mutating func dequeued(bytes: Int) {
        waiting -= 1
        waitingBytes -= bytes
    }

    /// Counts a sent message of QoS 1 or 2.
    mutating func sent() { inFlight += 1 }

    /// Counts a sent message that was acknowledged or dropped.
    mutating func finished() { inFlight -= 1 }
}
