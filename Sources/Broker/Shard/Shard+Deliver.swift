import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    /// Messages that may wait for a connected client: below what a queue can number, so that dropping
    /// the oldest makes room many times before holes have to be closed.
    private static var mostWaitingConnected: UInt32 { 60_000 }

    // MARK: Outbound

    /// Puts a message into one session's order, and sends what may leave.
    ///
    /// `number` names the stored content and is used for persistent sessions and QoS 1 and 2.
    mutating func deliver(
        _ message: Message, _ number: UInt64, to session: UInt32, qos: QoS, retain: Bool,
        ticket: UInt64, group: UInt32 = noIndex, _ counts: inout PublishCounts
    ) {
        let connection = sessions[session].connection
        // Nothing leaves before CONNACK [MQTT-3.2.0-1].
        let target = connection.flatMap { connections[$0.index].isOpen ? $0 : nil }
        counts.online += target == nil ? 0 : 1
        if qos == .atMostOnce {
            guard let target else {
                counts.dropped += 1
                drop(session, .away)
                return
            }
            // Behind messages that wait, so that it passes none of its topic [MQTT-4.6.0-6];
            // otherwise at once, and without a place in the queue.
            if ticket == 0, sessions[session].outbound.waiting == 0 || message.qos == .atMostOnce {
                guard connections[target.index].output.count < settings.outputBytes else {
                    counts.dropped += 1
                    drop(session, .slowReader)
                    return
                }
                message.append(
                    to: &connections[target.index].output, qos: .atMostOnce, retain: retain,
                    isDuplicate: false, packetIdentifier: 0, pool: pool)
                sessions[session].publishesSent += 1
                counters.publishSent(.atMostOnce, payloadBytes: message.payload.count)
                markDirty(target)
                return
            }
        }
        if isDurable, sessions[session].isPersistent {
            let kept = KeptMessage(
                message: message, number: number, qos: qos, retain: retain, ticket: ticket,
                group: group)
            deliverDurably(kept, to: session, isConnected: target != nil, &counts)
            return
        }
        guard makeRoom(in: session, for: message) else {
            counts.dropped += 1
            drop(session, .queueFull)
            return
        }
        if target == nil { counts.queued += 1 }
        message.retainReference()
        sessions[session].outbound.append(
            message, qos: qos, retain: retain, ticket: ticket, group: group, pool: pool)
        totals.waiting += 1
        totals.waitingBytes += message.count
        pump(session)
    }

    func mostWaiting(_ session: UInt32) -> UInt32 {
        sessions[session].connection == nil
            ? settings.queueMessages : Self.mostWaitingConnected
    }

    /// Keeps the session's queue within its limits; false when the new message is the one to go.
    ///
    /// The number binds what waits for an absent client; the bytes also what a connected one is slow
    /// to take.
    private mutating func makeRoom(in session: UInt32, for message: Message) -> Bool {
        // No room can be made for it, so nothing is given up for it.
        guard message.count <= settings.queueBytes else {
            counters.limits.add(.queueBytes)
            return false
        }
        let mostWaiting = mostWaiting(session)
        while true {
            if sessions[session].outbound.isFull {
                // Dropping leaves holes; without them the queue is full of what is in flight.
                sessions[session].outbound.closeHoles(pool: pool)
                guard !sessions[session].outbound.isFull else { return false }
            }
            let queue = sessions[session].outbound
            guard
                queue.waiting >= mostWaiting
                    || queue.waitingBytes + message.count > settings.queueBytes
            else { return true }
            counters.limits.add(queue.waiting >= mostWaiting ? .queueMessages : .queueBytes)
            guard settings.queuePolicy == .dropOldest,
                let position = sessions[session].outbound.dropOldestWaiting(pool: pool)
            else { return false }
            totals.waiting -= 1
            totals.waitingBytes -= queue.waitingBytes - sessions[session].outbound.waitingBytes
            finished(session, position)
            drop(session, .queueFull)
        }
    }

    /// Sends what may leave: in order, within the window, as far as the output has room.
    mutating func pump(_ session: UInt32) {
        guard let target = sessions[session].connection,
            connections[target.index].isOpen, !connections[target.index].isDoomed
        else { return }
        while true {
            guard connections[target.index].output.count < settings.outputBytes else {
                if !connections[target.index].isThrottled { counters.limits.add(.outputBytes) }
                connections[target.index].isThrottled = true
                return
            }
            let next = sessions[session].outbound.next(
                limit: settings.maxInFlight, pool: pool
            ) { ticket in
                // What was loaded from the store stands for all tickets up to its own.
                commits.areCommitted(through: ticket)
            }
            switch next {
            case .nothing:
                if sessions[session].outbound.loadedWaiting > 0 {
                    counters.limits.add(.maxInFlight)
                }
                if isDurable { loadMore(session) }
                noteQueueChecked(session)
                return
            case .awaitsCommit:
                if !sessions[session].awaitsCommit {
                    sessions[session].awaitsCommit = true
                    awaitingCommit.append(session)
                }
                return
            case .send(let item):
                totals.waiting -= 1
                totals.waitingBytes -= item.message.count
                guard !item.message.isExpired(atMs: wallClockMs) else {
                    finished(session, item.position)
                    sessions[session].outbound.abandon(item, pool: pool)
                    drop(session, .expired)
                    continue
                }
                guard mayStillReceive(item.message.topic, session) else {
                    revoke(session, item.message.topic, item.position)
                    sessions[session].outbound.abandon(item, pool: pool)
                    continue
                }
                item.message.append(
                    to: &connections[target.index].output, qos: item.qos, retain: item.retain,
                    isDuplicate: false, packetIdentifier: item.packetIdentifier.rawValue,
                    pool: pool)
                counters.publishSent(item.qos, payloadBytes: item.message.payload.count)
                if item.qos == .atMostOnce {
                    if isDurable { finished(session, item.position) }
                    item.message.release(in: pool)
                } else {
                    totals.inFlight += 1
                    if isRigged { Failpoint.deliver.reach() }
                }
                sessions[session].publishesSent += 1
                markDirty(target)
            }
        }
    }

    /// Sends again what a client that came back had not acknowledged [MQTT-4.4.0-1].
    mutating func resend(_ session: UInt32, _ handle: Handle) {
        revokeInFlight(session)
        let queue = sessions[session].outbound
        queue.forEachInFlight { item in
            switch item {
            case .publish(let item):
                // DUP 1: this packet is a re-delivery [MQTT-3.3.1-1].
                item.message.append(
                    to: &connections[handle.index].output, qos: item.qos, retain: item.retain,
                    isDuplicate: true, packetIdentifier: item.packetIdentifier.rawValue,
                    pool: pool)
                sessions[session].publishesSent += 1
                counters.publishSent(item.qos, payloadBytes: item.message.payload.count)
            case .pubrel(let identifier):
                counters.otherPacketsSent += 1
                // After PUBREC only PUBREL is owed [MQTT-4.3.3-1].
                connections[handle.index].output.append(4, pool: pool).storeBytes(
                    of: PacketEncoder.fourBytes(.pubrel, identifier).littleEndian, as: UInt32.self)
            }
        }
        connections[handle.index].resentBytes = UInt32(
            clamping: connections[handle.index].output.count)
        markDirty(handle)
    }

    // MARK: The receiver's acknowledgements

    mutating func receivePuback(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle.index].session
        guard
            case .accepted(let position) = sessions[session].outbound.acknowledge(
                identifier, pool: pool)
        else { return }
        sessions[session].publishesAcknowledged += 1
        totals.inFlight -= 1
        finished(session, position)
        pump(session)
        resumeRetained(session)
    }

    mutating func receivePubrec(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle.index].session
        var needsCommit = false
        switch sessions[session].outbound.markReceived(identifier, pool: pool) {
        case .accepted(let position):
            if sessions[session].isPersistent {
                writes.released(session: sessions[session].number, position: position)
                needsCommit = true
            }
        case .repeated, .unknown:
            // Answered all the same: the receiver waits for it, and it ends the exchange.
            break
        }
        acknowledge(handle, .pubrel, identifier, needsCommit: needsCommit, requestBytes: 0)
    }

    mutating func receivePubcomp(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle.index].session
        guard
            case .accepted(let position) = sessions[session].outbound.complete(
                identifier, pool: pool)
        else { return }
        sessions[session].publishesAcknowledged += 1
        totals.inFlight -= 1
        finished(session, position)
        pump(session)
        resumeRetained(session)
    }

    /// A queue position is done; nobody waits for this to be stored.
    mutating func finished(_ session: UInt32, _ position: UInt64) {
        guard sessions[session].isPersistent else { return }
        writes.finished(session: sessions[session].number, position: position)
    }

    /// Counts a message that a receiver lost; the first of its kind in a session is reported.
    mutating func drop(_ session: UInt32, _ reason: DropReason) {
        counters.dropped.add(reason)
        if reason == .slowReader { counters.limits.add(.outputBytes) }
        if sessions[session].drops == noIndex {
            sessions[session].drops = sessionDrops.insert(SessionDropCounts())
        }
        sessionDrops[sessions[session].drops].add(reason)
        // Losing QoS 0 while away is what QoS 0 says; what the rules refuse is reported as that.
        guard reason != .away, reason != .notAllowed, drops(of: session)[reason] == 1 else {
            return
        }
        note(
            .dropping(
                clientIdentifier: sessions[session].clientIdentifier.array, reason))
    }

    /// What a session lost since it was made.
    func drops(of session: UInt32) -> SessionDropCounts {
        let index = sessions[session].drops
        return index == noIndex ? SessionDropCounts() : sessionDrops[index]
    }
}
