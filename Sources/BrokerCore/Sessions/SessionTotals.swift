import MQTTCore

/// Messages queued and in flight for all sessions together.
package struct SessionTotals {
    package private(set) var waiting = 0
    package private(set) var waitingBytes = 0
    package private(set) var inFlight = 0

    /// Replaces one queue's share after a change.
    package mutating func replace(_ before: OutboundQueue, by after: OutboundQueue) {
        waiting += Int(after.waiting) - Int(before.waiting)
        waitingBytes += after.waitingBytes - before.waitingBytes
        inFlight += Int(after.inFlight) - Int(before.inFlight)
    }

    /// Counts a message that enters a queue.
    package mutating func queued(bytes: Int) {
        waiting += 1
        waitingBytes += bytes
    }

    /// Counts a message that leaves a queue.
    package mutating func dequeued(bytes: Int) {
        waiting -= 1
        waitingBytes -= bytes
    }

    /// Counts a sent message of QoS 1 or 2.
    package mutating func sent() { inFlight += 1 }

    /// Counts a sent message that was acknowledged or dropped.
    package mutating func finished() { inFlight -= 1 }
}
