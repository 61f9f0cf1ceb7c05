import MQTTCodec
import Structures

/// The view of a queue that an operator lists and drops messages by.
extension OutboundQueue {
    /// One message of the queue that is in memory.
    public struct Listed: BitwiseCopyable {
        public enum State: BitwiseCopyable {
            case waiting
            /// Sent and not acknowledged.
            case inFlight
            /// A QoS 2 message whose PUBREC has come: the broker still owes PUBREL and no longer
            /// has the message.
            case released
        }

        /// Borrowed from the queue; `nil` in state `released`.
        public var message: Message?
        public var position: UInt64
        public var qos: QoS
        public var retain: Bool
        public var state: State
    }

    /// Calls `body` for each message in memory from `position` on, oldest first, until it returns
    /// false. When ``isStoring``, messages that are only in the store follow from ``firstUnloaded``
    /// on.
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

    /// Drops the oldest waiting message, in memory or in the store, if its position is below
    /// `bound`. Returns that position; `nil` when there is no such message.
    public mutating func dropOldest(below bound: UInt64, pool: BytePool) -> UInt64? {
        skipHoles()
        if sentSpan < span {
            return head + UInt64(sentSpan) < bound ? dropOldestWaiting(pool: pool) : nil
        }
        return firstStored < bound ? dropOldestStored() : nil
    }
}
