import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Messages that a client has not acknowledged go to it again, once it is back.
extension Shard {
    /// Re-sends unacknowledged messages after a reconnect [MQTT-4.4.0-1].
    package mutating func resend(_ session: UInt32, _ handle: Handle) {
        revokeInFlight(session)
        giveUpInFlight(session, handle)
        let queue = sessions[session].outbound
        queue.forEachInFlight { item in
            switch item {
            case .publish(let item):
                resend(
                    item.message, qos: item.qos, retain: item.retain, item.position,
                    group: item.group, handle)
            case .pubrel(let identifier): resendPubrel(identifier, handle)
            }
        }
        connections[handle].outlet.noteResent()
        connections.markDirty(handle)
    }

    /// Drops messages in flight that a returning client of MQTT 5.0 has no room for by now.
    private mutating func giveUpInFlight(_ session: UInt32, _ handle: Handle) {
        guard connections[handle].outlet.speaks5 else { return }
        var given: [OutboundQueue.Item] = []
        sessions[session].outbound.forEachInFlight { resend in
            if case .publish(let item) = resend,
                !fits(item.message, qos: item.qos, group: item.group, of: session, to: handle)
            {
                given.append(item)
            }
        }
        for item in given {
            sessions.totals.finished()
            giveUp(item, of: session)
        }
    }

    /// DUP 1 marks a re-delivery [MQTT-3.3.1-1].
    package mutating func resend(
        _ message: Message, qos: QoS, retain: Bool, _ position: UInt64, group: UInt32,
        _ handle: Handle
    ) {
        guard
            append(
                message, qos: qos, retain: retain, isDuplicate: true,
                identifier: PacketIdentifier(position: position).rawValue, group: group,
                of: connections[handle].session, to: handle)
        else { return }
        sessions[connections[handle].session].publishesSent += 1
        sessions[connections[handle].session].publishesSentAboveQoS0 += 1
        context.counters.publishSent(qos, payloadBytes: message.payload.count)
    }

    /// After PUBREC only PUBREL is re-sent [MQTT-4.3.3-1].
    package mutating func resendPubrel(_ identifier: PacketIdentifier, _ handle: Handle) {
        connections[handle].outlet.append(
            word: PacketEncoder.fourBytes(.pubrel, identifier), pool: context.pool)
        context.counters.otherPacketsSent += 1
    }
}
