import MQTTCodec
import MQTTCore
import Structures

/// Sends copies of messages of QoS 0 that no queue keeps.
extension Shard {
    /// Copies a packet to the output of the session's client; false when the client does not get it.
    /// `group` is the shared subscription by which it does.
    @inline(__always)
    mutating func deliverAtMostOnce(
        _ raw: RawPublish, to session: UInt32, group: UInt32 = noIndex
    ) -> Bool {
        guard let target = sessions[session].connection, connections[target].machine.isOpen else {
            if sessions[session].isUsed { drop(session, .offline) }
            return false
        }
        guard connections[target].outlet.count < context.limits.outputBytes else {
            drop(session, .slowReader)
            return false
        }
        guard !raw.is5, !connections[target].outlet.speaks5 else {
            return deliverRaw5(raw, group: group, of: session, to: target)
        }
        sessions[session].publishesSent += 1
        connections[target].outlet.append(
            packet: raw.packet, count: raw.size, pool: context.pool)
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
        guard
            append(
                message, qos: .atMostOnce, retain: retain, isDuplicate: false, identifier: 0,
                group: noIndex, of: session, to: target)
        else { return }
        connections.markDirty(target)
    }
}

/// A message of QoS 0 whose copies for very many groups are sent in slices.
package enum AtMostOnceCopy {
    /// A client's packet.
    case packet(RawPublish)
    /// One of the broker's own values.
    case system(Message)

    /// There are more copies than these; see ``Message/sharesPayload(count:receivers:)``.
    private static var fewestCopies: Int { 128 }

    /// `nil` when the receivers of the packet share its payload.
    init?(_ raw: RawPublish) {
        guard !Message.sharesPayload(count: raw.payload.count, receivers: Self.fewestCopies) else {
            return nil
        }
        self = .packet(raw)
    }

    var size: Int {
        switch self {
        case .packet(let raw): raw.size
        case .system(let message): message.contentBytes
        }
    }
}
