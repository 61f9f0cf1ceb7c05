import Structures

/// Waiting messages that leave a queue from its middle, because later ones replace them or their time
/// is over.
extension OutboundQueue {
    /// The message that waits in memory at a position, borrowed; `nil` when none does.
    public func waitingMessage(at position: UInt64) -> Message? {
        guard position >= head + UInt64(sentSpan), position < head + UInt64(span) else {
            return nil
        }
        let entry = entry(at: position)
        return entry.state == .waiting ? entry.message : nil
    }

    /// Drops a waiting message in memory; false when none waits there at this position.
    public mutating func dropWaiting(at position: UInt64, pool: BytePool) -> Bool {
        guard position >= head + UInt64(sentSpan), position < head + UInt64(span),
            entry(at: position).state == .waiting
        else { return false }
        let message = takeWaiting(position)
        message?.release(in: pool)
        store(.hole, at: position)
        skipHoles()
        advanceHead(pool)
        return true
    }

    /// Calls `body` for each position without a message behind the first waiting one in memory,
    /// ascending.
    public func forEachHole(_ body: (UInt64) -> Void) {
        var isBehind = false
        for position in head + UInt64(sentSpan)..<head + UInt64(span) {
            if entry(at: position).state != .hole {
                isBehind = true
            } else if isBehind {
                body(position)
            }
        }
    }

    /// Drops one waiting message that is only in the store, where it leaves a hole; of unknown size
    /// without `bytes`.
    public mutating func dropStored(bytes: Int? = nil) {
        let bytes = bytes ?? averageStoredBytes
        // After a restart a hole may have been taken for a message, and a message for it.
        storedHoles = min(stored, storedHoles + 1)
        storedBytes = stored == storedHoles ? 0 : max(0, storedBytes - bytes)
    }

    /// Passes positions at the front of the stored part, in front of `position`, that are known to
    /// be holes.
    public mutating func passHoles(below position: UInt64) {
        guard position > firstStored else { return }
        passStored(to: min(position, end), messages: 0, bytes: 0)
    }
}
