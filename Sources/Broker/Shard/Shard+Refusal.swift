import MQTTCodec
import MQTTCore
import Structures

/// What happens while the store takes nothing new: the disk refuses, or is nearly full, or so much waits
/// for it that memory would grow without a bound.
///
/// Those who send messages that it would have to keep wait, in their sockets; everything else goes
/// on: QoS 0, acknowledgements, pings, and messages among clean sessions. While too much waits, so do
/// those who want a subscription or a session stored; a disk that refuses still gets these.
extension Shard {
    /// Whether new messages for the store have to wait.
    var holdsForStore: Bool { storeRefuses || isStoreBehind }

    /// Whether this packet has to wait; its connection is not read any further then.
    mutating func mustWaitForStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard addsToStore(handle, frame, bytes) else { return false }
        connections[handle.index].awaitsStore = true
        connections[handle.index].isPaused = true
        counters.publishersPaused += 1
        awaitingStore[handle] = awaitingStorePlace
        awaitingStorePlace += 1
        if reportsLifecycle {
            let session = connections[handle.index].session
            notices.append(
                .awaitsStore(
                    handle,
                    clientIdentifier: session == noIndex
                        ? nil : sessions[session].clientIdentifier.array))
        }
        return true
    }

    /// Whether the store would have to keep something of a packet, and does not take it at present.
    private mutating func addsToStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        switch frame.type {
        case .publish:
            guard connections[handle.index].machine.isActive,
                case .publish(let publish)? = try? PacketDecoder.decode(frame, bytes.bytes)
            else { return false }
            let qos = publish.delivery.qos
            return needsStore(
                topic: bytes[publish.topic.range], qos: qos, retain: publish.retain,
                holdsIdentifier: qos == .exactlyOnce
                    && sessions[connections[handle.index].session].isPersistent)
        case .subscribe, .unsubscribe:
            return isStoreBehind && connections[handle.index].machine.isActive
                && sessions[connections[handle.index].session].isPersistent
        case .connect:
            guard isStoreBehind, connections[handle.index].machine.isAwaitingConnect,
                case .connect(let connect)? = try? PacketDecoder.decode(frame, bytes.bytes)
            else { return false }
            return !connect.cleanSession || connect.will != nil
        case .connack, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect:
            return false
        }
    }

    /// Whether the store would have to keep something of such a message.
    mutating func needsStore(
        topic: UnsafeRawBufferPointer, qos: QoS, retain: Bool, holdsIdentifier: Bool
    ) -> Bool {
        guard !retain, !holdsIdentifier else { return true }
        guard qos != .atMostOnce else { return false }
        return (!shared.isEmpty && !shared.match(topic).isEmpty)
            || receivers(of: topic, isCounted: false).contains {
                // Behind what waits, a message at QoS 0 has a place in the queue too.
                sessions[$0.session].isPersistent
                    && ($0.qos != .atMostOnce || sessions[$0.session].outbound.waiting > 0)
            }
    }

    /// The store takes more again: each goes on until it has to wait anew, those first who have waited
    /// longest.
    mutating func resumeAwaitingStore() {
        let waiting = awaitingStore.sorted { $0.value < $1.value }
        awaitingStore.removeAll()
        for (handle, _) in waiting
        where isCurrent(handle) && connections[handle.index].awaitsStore {
            connections[handle.index].awaitsStore = false
            resumeIfPossible(handle)
        }
        for session in retainedJobs.keys { resumeRetained(session) }
    }
}
