import MQTTCore

/// The messages that all sessions are owed together.
struct SessionTotals {
    private(set) var waiting = 0
    private(set) var waitingBytes = 0
    private(set) var inFlight = 0

    /// One session's queue has changed.
    mutating func replace(_ before: OutboundQueue, by after: OutboundQueue) {
        waiting += Int(after.waiting) - Int(before.waiting)
        waitingBytes += after.waitingBytes - before.waitingBytes
        inFlight += Int(after.inFlight) - Int(before.inFlight)
    }

    /// A message was put into a queue.
    mutating func queued(bytes: Int) {
        waiting += 1
        waitingBytes += bytes
    }

    /// A message leaves its queue, to be sent or given up.
    mutating func dequeued(bytes: Int) {
        waiting -= 1
        waitingBytes -= bytes
    }

    /// A message of QoS 1 or 2 was sent.
    mutating func sent() { inFlight += 1 }

    /// A message of QoS 1 or 2 was acknowledged, or given up after it had been sent.
    mutating func finished() { inFlight -= 1 }
}
