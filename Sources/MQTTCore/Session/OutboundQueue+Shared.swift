import MQTTCodec
import Structures

/// Messages that this session got as a member of a shared subscription's group.
extension OutboundQueue {
    /// A message that left this queue, so that another member of its group may get it. The caller
    /// takes the reference over.
    public struct Returned {
        public var message: Message
        public var position: UInt64
        public var group: UInt32
        /// The commit that no receiver may get the message before; 0 for none.
        public var ticket: UInt64

        init(_ message: Message, of entry: Entry, at position: UInt64) {
            self.message = message
            self.position = position
            (group, ticket) = (entry.group, entry.ticket)
        }
    }

    /// The fate of the messages that a group sent to this session.
    public enum Fate {
        /// They stay as they are.
        case keep
        /// They become the session's own, as if no group had chosen it.
        case own
        /// Messages that may still go to other members leave the queue; the rest become the
        /// session's own.
        case giveBack
    }

    /// Removes and returns, oldest first, the waiting messages of all groups for which `fate` says
    /// `giveBack`.
    ///
    /// `unacknowledged` also removes QoS 1 messages in flight. QoS 2 messages in flight stay,
    /// because their receiver may already have them.
    public mutating func takeShared(
        unacknowledged: Bool, pool: BytePool, fate: (UInt32) -> Fate
    ) -> [Returned] {
        var returned: [Returned] = []
        for offset in 0..<span {
            let position = head + UInt64(offset)
            var entry = entry(at: position)
            guard entry.group != noIndex, entry.state != .hole else { continue }
            let fate = fate(entry.group)
            if fate == .keep { continue }
            if fate == .giveBack, let message = entry.message {
                switch entry.state {
                case .waiting:
                    _ = takeWaiting(position)
                    store(.hole, at: position)
                    returned.append(Returned(message, of: entry, at: position))
                    continue
                case .sent where unacknowledged && entry.qos == .atLeastOnce:
                    loadedInFlight -= 1
                    store(.hole, at: position)
                    returned.append(Returned(message, of: entry, at: position))
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
