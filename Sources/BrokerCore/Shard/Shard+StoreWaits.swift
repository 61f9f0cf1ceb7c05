import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Clients that wait because the store accepts no new messages.
///
/// The store accepts none while the disk fails or is nearly full, and while the backlog is full. A
/// client then waits, in its socket, if its next packet must be stored. All else continues: QoS 0,
/// acknowledgements, pings, and messages among clean sessions. Only a full backlog also delays new
/// subscriptions and sessions.
extension Shard {
    /// True when this packet has to wait for the store; its connection is then not read further.
    package mutating func awaitsStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard needsStore(handle, frame, bytes) else { return false }
        awaitStore(handle)
        return true
    }

    /// Has a connection's next packet wait for the store.
    mutating func awaitStore(_ handle: Handle) {
        connections.awaitStore(handle)
        context.counters.publishersPaused += 1
        if reportsWaiting {
            let session = connections[handle].session
            context.notices.append(
                .awaitsStore(
                    handle,
                    clientID: session == noIndex ? nil : sessions.identifier(of: session)))
        }
    }

    /// Pauses the connection if the packet at `offset` must wait for the store once it is complete,
    /// so that its payload stays in the kernel.
    package mutating func awaitStoreEarly(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, _ offset: Int
    ) {
        guard let begun = PacketDecoder.begunPublish(bytes.bytes, at: offset) else { return }
        _ = awaitsStore(handle, begun, bytes)
    }

    /// True when a packet must be stored and the store does not accept it now.
    private mutating func needsStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        let machine = connections[handle].machine
        switch frame.type {
        case .publish:
            guard machine.isActive,
                case .publish(let publish)? = try? PacketDecoder.decode(frame, bytes.bytes)
            else { return false }
            let qos = publish.delivery.qos
            return needsStore(
                topic: bytes[publish.topic.range], qos: qos, retain: publish.retain,
                holdsIdentifier: qos == .exactlyOnce
                    && sessions[connections[handle].session].isPersistent)
        case .subscribe, .unsubscribe:
            return commits.isBacklogFull && machine.isActive
                && sessions[connections[handle].session].isPersistent
        case .connect:
            // A CONNECT of 5.0 may ask for a session, and waits with those that do.
            if PacketDecoder5.isSpoken(inConnect: frame.body, bytes.bytes) {
                return commits.isBacklogFull && machine.isAwaitingConnect
            }
            guard commits.isBacklogFull, machine.isAwaitingConnect,
                case .connect(let connect)? = try? PacketDecoder.decode(frame, bytes.bytes)
            else { return false }
            return !connect.cleanSession || connect.will != nil
        case .connack, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect:
            return false
        }
    }

    /// True when such a message must be stored for any receiver, or when the receivers are not found
    /// within a few steps.
    package mutating func needsStore(
        topic: UnsafeRawBufferPointer, qos: QoS, retain: Bool, holdsIdentifier: Bool
    ) -> Bool {
        guard !retain, !holdsIdentifier, !isFeatureTopic(topic) else { return true }
        guard qos != .atMostOnce else { return false }
        guard
            let matches = receivers(
                of: topic, most: WorkBudget.mostMatchSteps, isCounted: false)
        else { return true }
        return subscriptions.hasShared && !subscriptions.groups.isEmpty
            || matches.contains {
                // A message of QoS 0 gets a queue position if others wait before it.
                sessions[$0.session].isPersistent
                    && ($0.qos != .atMostOnce || sessions[$0.session].outbound.waiting > 0)
            }
    }
}
