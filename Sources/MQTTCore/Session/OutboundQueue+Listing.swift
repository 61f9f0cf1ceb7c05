import MQTTCodec
import Structures

/// What an operator sees of a queue, and may take out of it.
extension OutboundQueue {
    /// One message that is in memory.
    public struct Listed: BitwiseCopyable {
        public enum State: BitwiseCopyable {
            case waiting
            /// Sent, and not acknowledged.
            case inFlight
            /// QoS 2: only the PUBREL is owed, and the message is gone.
            case released
        }

        /// `nil` once it is released; the queue keeps its reference.
        public var message: Message?
        public var position: UInt64
        public var qos: QoS
        public var retain: Bool
        public var state: State
    }

    /// Goes through what is in memory from a position on, oldest first, until the body returns false.
    /// What only the store has comes behind it: from ``firstUnloaded`` on, if ``isStoring``.
    public func forEachListed(from position: UInt64, _ body: (Listed) -> Bool) {
        var position = max(position, head)
        while position < head + UInt64(span) {
            defer { position += 1 }
            let entry = entry(at: position)
            let state: Listed.State
            switch entry.state {
            case .hole: continue
            case .waiting: state = .waiting
            case .sent: state = .inFlight
            case .released: state = .released
            }
            let listed = Listed(
                message: entry.message, position: position, qos: entry.qos, retain: entry.retain,
                state: state)
            guard body(listed) else { return }
        }
    }

    /// Gives up the oldest message that waits, in memory or in the store, if its position is below
    /// `bound`; returns that position, `nil` when there is none.
    public mutating func dropOldest(below bound: UInt64, pool: BytePool) -> UInt64? {
        skipHoles()
        if sentSpan < span {
            return head + UInt64(sentSpan) < bound ? dropOldestWaiting(pool: pool) : nil
        }
        return firstStored < bound ? dropOldestStored() : nil
    }
}
