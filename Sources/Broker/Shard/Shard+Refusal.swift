import MQTTCodec
import MQTTCore
import Structures

/// What happens while the store takes no new messages: the disk refuses, or is nearly full.
///
/// Publishers of messages that it would have to keep wait, in their sockets; everything else goes
/// on: QoS 0, acknowledgements, pings, and messages among clean sessions.
extension Shard {
    /// Whether this PUBLISH has to wait; its connection is not read any further then.
    mutating func mustWaitForStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard connections[handle.index].machine.isActive,
            case .publish(let publish)? = try? PacketDecoder.decode(frame, bytes.bytes)
        else { return false }
        let session = connections[handle.index].session
        let isPersistent = sessions[session].isPersistent
        guard
            needsStore(
                topic: bytes[publish.topic.range], qos: publish.delivery.qos,
                retain: publish.retain,
                holdsIdentifier: isPersistent && publish.delivery.qos == .exactlyOnce)
        else { return false }
        connections[handle.index].awaitsStore = true
        connections[handle.index].isPaused = true
        counters.publishersPaused += 1
        awaitingStore.insert(handle)
        if reportsLifecycle {
            notices.append(
                .awaitsStore(
                    handle, clientIdentifier: sessions[session].clientIdentifier.array))
        }
        return true
    }

    /// Whether the store would have to keep something of such a message.
    mutating func needsStore(
        topic: UnsafeRawBufferPointer, qos: QoS, retain: Bool, holdsIdentifier: Bool
    ) -> Bool {
        guard !retain, !holdsIdentifier else { return true }
        guard qos != .atMostOnce else { return false }
        return (!shared.isEmpty && !shared.match(topic).isEmpty)
            || receivers(of: topic, isCounted: false).contains {
                $0.qos != .atMostOnce && sessions[$0.session].isPersistent
            }
    }

    /// The store takes messages again.
    mutating func resumeAwaitingStore() {
        let waiting = awaitingStore
        awaitingStore.removeAll()
        for handle in waiting where isCurrent(handle) && connections[handle.index].awaitsStore {
            connections[handle.index].awaitsStore = false
            resumeIfPossible(handle)
        }
    }
}
