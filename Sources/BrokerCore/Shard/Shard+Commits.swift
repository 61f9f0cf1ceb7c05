import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Commits and what waits for them; and clients that wait because the store takes nothing new.
///
/// The store takes nothing new while the disk refuses or is nearly full, and while the backlog is full. Then
/// clients wait, in their sockets, whose next packet the store would have to keep; everything else goes on:
/// QoS 0, acknowledgements, pings, and messages among clean sessions. Only a full backlog also holds new
/// subscriptions and sessions back; a disk that refuses still gets these.
extension Shard {
    /// Ends the current group of records; returns its ticket.
    @discardableResult
    mutating func commit(_ action: CommitLog.Action = .none) -> UInt64 {
        let ticket = commits.commit(action)
        noteBacklog()
        return ticket
    }

    @inline(__always)
    mutating func noteBacklog() {
        guard commits.fillsBacklog(bound: context.limits.storeBacklogBytes) else { return }
        context.counters.limits.add(.storeBacklog)
        context.notices.append(.storeBehind(bytes: commits.backlogBytes))
    }

    /// Releases what waited for the commits that have completed: acknowledgements, CONNACKs, answers
    /// to the admin plane, and the messages themselves.
    mutating func takeCompletions() {
        let (wasRefusing, wasFull) = (commits.isRefusing, commits.isBacklogFull)
        commits.updateRefusal()
        takeCommits()
        if (wasRefusing && !commits.isRefusing) || (wasFull && !commits.isBacklogFull) {
            resumeStoreWaiters()
        }
        takeSlices()
        readEnded()
        closeEnding()
    }

    private mutating func takeCommits() {
        guard commits.fetchCompletions() else { return }
        while let action = commits.nextCompletion() {
            switch action {
            case .none: continue
            case .acknowledge(let handle): releaseAcknowledgements(handle)
            case .reply(let number): requests.committed(number)
            }
        }
        commits.finishCompletions(bound: context.limits.storeBacklogBytes)
        while let handle = commits.nextOpening() { finishCommit(handle) }
        sessions.takeAwaitingCommit(&committed)
        while let session = committed.popLast() {
            if sessions[session].generation != 0 { pump(session) }
        }
    }

    // MARK: Waiting for the store

    /// Whether this packet has to wait for the store; its connection is not read any further then.
    mutating func awaitsStore(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard needsStore(handle, frame, bytes) else { return false }
        connections.awaitStore(handle)
        context.counters.publishersPaused += 1
        if reportsLifecycle {
            let session = connections[handle].session
            context.notices.append(
                .awaitsStore(
                    handle,
                    clientIdentifier: session == noIndex ? nil : sessions.identifier(of: session)))
        }
        return true
    }

    /// Whether the store would have to keep something of a packet, and does not take it at present.
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
            guard commits.isBacklogFull, machine.isAwaitingConnect,
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
        return subscriptions.matchesShared(topic)
            || receivers(of: topic, isCounted: false).contains {
                // Behind messages that wait, a message at QoS 0 has a place in the queue too.
                sessions[$0.session].isPersistent
                    && ($0.qos != .atMostOnce || sessions[$0.session].outbound.waiting > 0)
            }
    }

    /// The store takes messages again: each client goes on until it has to wait anew, those first that have
    /// waited longest.
    private mutating func resumeStoreWaiters() {
        for handle in connections.takeStoreWaiters() { resumeIfPossible(handle) }
        for session in walks.sessions { resumeRetained(session) }
    }
}
