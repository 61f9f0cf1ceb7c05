import MQTTCodec
import MQTTCore
import Structures

/// Sends copies of messages of QoS 0 that no queue keeps.
extension Shard {
    /// Copies a packet to the output of the session's client; false when the client does not get it.
    @inline(__always)
    mutating func deliverAtMostOnce(
        _ packet: UnsafeRawPointer, _ size: Int, to session: UInt32
    ) -> Bool {
        guard let target = sessions[session].connection, connections[target].machine.isOpen else {
            if sessions[session].isUsed { drop(session, .offline) }
            return false
        }
        guard connections[target].outlet.count < context.limits.outputBytes else {
            drop(session, .slowReader)
            return false
        }
        sessions[session].publishesSent += 1
        connections[target].outlet.append(packet: packet, count: size, pool: context.pool)
        connections.markDirty(target)
        return true
    }

    /// Sends one of the broker's own values. Offline clients and slow readers miss it.
    ///
    /// Only the connection's bytes count it, so that watching does not change the watched figures.
    package mutating func sendSystemMessage(_ message: Message, to session: UInt32, retain: Bool) {
        guard let target = sessions[session].connection, connections[target].machine.isOpen,
            connections[target].outlet.count < context.limits.outputBytes
        else { return }
        connections[target].outlet.append(
            message, qos: .atMostOnce, retain: retain, pool: context.pool)
        connections.markDirty(target)
    }
}

/// A message of QoS 0 whose copies for very many groups are sent in slices.
package enum AtMostOnceCopy {
    /// A client's packet as it came, for each receiver.
    case packet(UnsafeRawPointer, size: Int, payloadBytes: Int)
    /// One of the broker's own values.
    case system(Message)

    /// There are more copies than these; see ``Message/sharesPayload(count:receivers:)``.
    private static var fewestCopies: Int { 128 }

    /// A client's packet by its parts; `nil` when it is not encoded as the broker does it, or when its
    /// receivers share the payload.
    init?(
        _ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, packetBytes: Int
    ) {
        let size = PublishEncoder.size(
            topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
        // The packet begins before its topic, by the fixed header and the topic's length.
        guard size == packetBytes, let start = topic.baseAddress,
            !Message.sharesPayload(count: payload.count, receivers: Self.fewestCopies)
        else { return nil }
        self = .packet(
            start - (size - topic.count - payload.count), size: size, payloadBytes: payload.count)
    }

    var size: Int {
        switch self {
        case .packet(_, let size, _): size
        case .system(let message): message.contentBytes
        }
    }
}
