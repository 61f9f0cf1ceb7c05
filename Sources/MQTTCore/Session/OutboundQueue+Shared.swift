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

    /// Takes back, oldest first, what waits of a group's messages; of all groups with `nil`.
    ///
    /// `unacknowledged` takes QoS 1 messages along that were sent and not acknowledged. What was sent
    /// at QoS 2 stays with its receiver, who may have it already.
    public mutating func takeShared(
        _ group: UInt32?, unacknowledged: Bool, pool: BytePool
    ) -> [Returned] {
        var returned: [Returned] = []
        for offset in 0..<span {
            let position = head + UInt64(offset)
            let entry = entry(at: position)
            guard entry.group != noIndex, group == nil || entry.group == group,
                let message = entry.message
            else { continue }
            switch entry.state {
            case .waiting:
                _ = takeWaiting(position)
            case .sent where unacknowledged && entry.qos == .atLeastOnce:
                loadedInFlight -= 1
            case .sent, .released, .hole:
                continue
            }
            store(.hole, at: position)
            returned.append(Returned(message: message, position: position, group: entry.group))
        }
        if !returned.isEmpty { advanceHead(pool) }
        return returned
    }
}
