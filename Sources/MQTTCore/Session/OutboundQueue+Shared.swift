import MQTTCodec
import Structures

/// Messages that a shared subscription gave to this session.
extension OutboundQueue {
    /// What a shared subscription gave to this session and another member may have instead; the
    /// caller takes the references over.
    public struct Returned {
        public var message: Message
        public var position: UInt64
        public var group: UInt32
    }

    /// What becomes of a group's messages.
    public enum Fate {
        case keep
        /// They are the session's own, as if no group had chosen it.
        case own
        /// Other members get them, as far as they can; the rest is the session's own.
        case giveBack
    }

    /// Takes back, oldest first, what waits of the messages of the groups that `fate` gives back.
    ///
    /// `unacknowledged` takes QoS 1 messages along that were sent and not acknowledged. What was sent
    /// at QoS 2 stays with its receiver, who may have it already.
    public mutating func takeShared(
        unacknowledged: Bool, pool: BytePool, fate: (UInt32) -> Fate
    ) -> [Returned] {
        var returned: [Returned] = []
        for offset in 0..<span {
            let position = head + UInt64(offset)
            var entry = entry(at: position)
            guard entry.group != noIndex, entry.state != .hole else { continue }
            let group = entry.group
            let fate = fate(group)
            if fate == .keep { continue }
            if fate == .giveBack, let message = entry.message {
                switch entry.state {
                case .waiting:
                    _ = takeWaiting(position)
                    store(.hole, at: position)
                    returned.append(Returned(message: message, position: position, group: group))
                    continue
                case .sent where unacknowledged && entry.qos == .atLeastOnce:
                    loadedInFlight -= 1
                    store(.hole, at: position)
                    returned.append(Returned(message: message, position: position, group: group))
                    continue
                case .sent, .released, .hole:
                    break
                }
            }
            entry.group = noIndex
            store(entry, at: position)
        }
        if !returned.isEmpty { advanceHead(pool) }
        return returned
    }
}
