import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Loads parts of queues from the store, through the states of ``QueueLoad``.
extension Shard {
    /// Requests the next messages from the store if the client can take them.
    package mutating func loadMore(_ session: UInt32) {
        guard sessions[session].outbound.isStoring,
            !sessions.loads.isLoading(sessions[session].number),
            let target = sessions[session].connection, connections[target].machine.isActive,
            connections[target].outlet.count < context.limits.outputBytes
        else { return }
        load(session, for: target)
    }

    /// Requests the messages that were in flight, as far as the in-flight window has room for them,
    /// and the waiting ones after them.
    package mutating func load(_ session: UInt32, for target: Handle) {
        passHoles(session)
        let queue = sessions[session].outbound
        let count = QueueWindow.waitingToLoad(queue)
        let limit = context.limits.maxInFlight
        guard count > 0 || QueueWindow.resends(queue, limit: limit) else { return }
        let number = sessions[session].number
        let below = queue.firstStored + UInt64(count)
        guard sessions.loads[number].begin(for: target, below: below) == .read else { return }
        var ticket: UInt64 = 0
        if count > 0 {
            // Recorded before any of them is sent: a message that may have been sent keeps its
            // identifier [MQTT-4.4.0-1], and no limit drops it.
            commits.records.horizon(session: number, position: below)
            ticket = commits.nextTicket
        }
        commits.read(
            QueueRead(
                session: number, from: queue.firstUnloaded, below: below,
                maxMessages: Int(max(QueueWindow.messages, limit)), maxBytes: QueueWindow.bytes,
                tag: ReadTag.load.encoded, ticket: ticket))
    }

    /// Removes the queue of an offline client from memory; the store has all of it.
    package mutating func unload(_ session: UInt32) {
        let before = sessions[session].outbound
        let number = sessions[session].number
        sessions.loads.connectionClosed(number)
        if sessions[session].follows { followers.queueUnloads(&self, session) }
        sessions[session].outbound.unload(pool: context.pool)
        sessions.totals.replace(before, by: sessions[session].outbound)
        commits.records.horizon(
            session: number, position: sessions[session].outbound.firstStored)
        commits.records.detached(number, sinceMs: context.wallClockMs)
    }

    /// Takes the results of reads, for clients, for ended sessions and for features.
    package mutating func takeSlices() {
        for slice in commits.takeSlices() {
            switch ReadTag(encoded: slice.request.tag) {
            case .load: takeLoad(slice)
            case .ended: takeEnded(slice)
            case .feature(let tag): followers.take(&self, slice, tag: tag)
            }
        }
    }

    private mutating func takeLoad(_ slice: QueueSlice) {
        let number = slice.request.session
        if let handle = sessions.loads[number].reader, connections.isLive(handle),
            let sessionPresent = connections[handle].machine.loaded()
        {
            // CONNACK is the first packet [MQTT-3.2.0-1].
            finishOpening(handle, sessionPresent: sessionPresent)
        }
        var load = sessions.loads[number]
        let event = load.receive(
            slice, isLive: { connections.isLive($0) },
            isWaiting: { connections[$0].machine.holdsInput })
        sessions.loads[number] = load
        switch event {
        case .hold, .discard: return
        case .place(let handle, let dropped): place(slice, for: handle, dropped: dropped)
        case .restart(let handle):
            let session = connections[handle].session
            self.load(session, for: handle)
            // If an operator has emptied the queue, CONNACK has nothing to wait for any more.
            if !sessions.loads[number].isLoading,
                let sessionPresent = connections[handle].machine.loaded()
            {
                finishOpening(handle, sessionPresent: sessionPresent)
            }
        }
    }

    /// Puts a part of the queue into memory and sends it, except positions dropped meanwhile.
    package mutating func place(
        _ slice: QueueSlice, for handle: Handle, dropped: ClosedRange<UInt64>?
    ) {
        let session = connections[handle].session
        let before = sessions[session].outbound
        let firstWaiting = before.firstStored
        var next = slice.next
        slice.forEach { item in
            guard dropped?.contains(item.position) != true else { return }
            if item.position < firstWaiting {
                // After a crash more may have been sent than the window holds.
                guard item.position < next else { return }
                if sessions[session].outbound.loadedInFlight < context.limits.maxInFlight {
                    placeSent(item, session, handle)
                } else {
                    next = item.position
                }
            } else if item.position < next, belongsToOthers(item, session) {
                let follower = follower(of: session, item.position)
                finished(session, item.position, .handedOver)
                pass(item, follower: follower)
                sessions[session].outbound.skipWaiting(
                    item.position, bytes: item.topic.count + item.payload.count)
            } else if item.position < next, !placeWaiting(item, session, slice.request.ticket) {
                next = item.position
            }
        }
        if slice.failure == nil {
            if next >= firstWaiting {
                sessions[session].outbound.finishPlacingSent()
                sessions.loads.hasLoadedInFlight(sessions[session].number)
            } else {
                sessions[session].outbound.continuePlacingSent()
            }
        }
        sessions[session].outbound.finishPlacingWaiting(below: next)
        sessions.totals.replace(before, by: sessions[session].outbound)
        guard let failure = slice.failure else {
            pump(session)
            return
        }
        // The rest stays in the store until the client connects again.
        context.notices.append(
            .unreadable(
                clientIdentifier: sessions.identifier(of: session), "\(failure)"))
        end(handle, .storeFailure)
    }

    /// Re-sends a message with DUP 1 [MQTT-3.3.1-1], in the original order [MQTT-4.6.0-1].
    private mutating func placeSent(_ item: QueueSlice.Item, _ session: UInt32, _ handle: Handle) {
        if item.qos == QoS.atMostOnce.rawValue {
            // QoS 0 may have been sent, and is never re-sent.
            sessions[session].outbound.skipSent(item.position)
            finished(session, item.position, .sent)
            return
        }
        var item = item
        if let acknowledgement = sessions.loads.takeAcknowledgement(
            item.position, of: sessions[session].number), item.qos == QoS.exactlyOnce.rawValue
        {
            // The store may have read the part before it knew of PUBREC.
            item.release()
            if acknowledgement == .completed {
                sessions[session].outbound.skipSent(item.position)
                acknowledged(session, item.position, .exactlyOnce, arrivedMs: 0)
                return
            }
        }
        guard item.isReleased || rights.mayStillReceive(item.topic, sessions[session]) else {
            sessions[session].outbound.skipSent(item.position)
            revoke(session, item.topic, item.position)
            return
        }
        let loaded = loaded(item, session)
        sessions[session].outbound.placeSent(loaded, pool: context.pool)
        if let message = loaded.message {
            resend(message, qos: loaded.qos, retain: loaded.retain, item.position, handle)
        } else {
            resendPubrel(PacketIdentifier(position: item.position), handle)
        }
        connections[handle].outlet.noteResent()
        connections.markDirty(handle)
    }

    /// False when the position is too far from the messages in flight; a later load brings it.
    private mutating func placeWaiting(
        _ item: QueueSlice.Item, _ session: UInt32, _ ticket: UInt64
    ) -> Bool {
        guard sessions[session].outbound.canPlace(item.position) else { return false }
        let loaded = loaded(item, session)
        sessions[session].outbound.placeWaiting(loaded, ticket: ticket, pool: context.pool)
        return true
    }

    /// True when the session has left the group of this message, so another member gets it.
    private func belongsToOthers(_ item: QueueSlice.Item, _ session: UInt32) -> Bool {
        guard !item.shared.isEmpty, let group = subscriptions.group(item.shared) else {
            return false
        }
        return !subscriptions.contains(sessions[session].subscriptions, group)
    }

    private func loaded(_ item: QueueSlice.Item, _ session: UInt32) -> OutboundQueue.Loaded {
        var group = noIndex
        if !item.shared.isEmpty, let found = subscriptions.group(item.shared),
            subscriptions.contains(sessions[session].subscriptions, found)
        {
            group = found
        }
        return OutboundQueue.Loaded(
            message: item.isReleased ? nil : Message(item, pool: context.pool),
            position: item.position, qos: QoS(rawValue: item.qos) ?? .atLeastOnce,
            retain: item.retain, group: group)
    }

    // MARK: Queues of ended sessions

    /// Reads further queues of ended sessions, while the store accepts messages.
    package mutating func readEnded() {
        while !commits.holdsMessages, let read = endedSessions.nextRead() { commits.read(read) }
    }

    /// Hands over a part of an ended session's queue: one group of records gives the messages to
    /// other members and removes them here. The last part removes the session.
    private mutating func takeEnded(_ slice: QueueSlice) {
        guard var ended = endedSessions.take(slice.request.session) else { return }
        guard !commits.holdsMessages else {
            endedSessions.add(ended)
            return
        }
        let (number, horizon) = (ended.number, ended.horizon)
        slice.forEach { item in
            guard !item.shared.isEmpty, !item.isReleased else { return }
            // A sent QoS 2 message is not handed over, since its receiver may have it.
            guard item.position >= horizon || item.qos == QoS.atLeastOnce.rawValue else { return }
            commits.records.finished(session: number, position: item.position)
            pass(item)
        }
        if let failure = slice.failure {
            // The rest stays in the store; the next start tries again.
            context.notices.append(
                .unreadableEnded(clientIdentifier: ended.clientIdentifier, "\(failure)"))
            return
        }
        guard slice.next < ended.below else {
            commits.records.sessionRemoved(number)
            return
        }
        ended.from = slice.next
        endedSessions.add(ended)
    }

    /// Delivers a stored message to a member of its group, if there is one.
    private mutating func pass(_ item: QueueSlice.Item, follower: UInt32 = noIndex) {
        let group = subscriptions.group(item.shared)
        guard group != nil else {
            context.counters.dropped.add(.away)
            return
        }
        let message = Message(item, pool: context.pool)
        pass(message, to: group, ticket: commits.nextTicket, follower: follower)
        message.release(in: pool)
    }
}

extension Message {
    /// The message of a queue position, which must still have its content (no PUBREC yet).
    package init(_ item: QueueSlice.Item, pool: BytePool) {
        let published = StoredQoS(byte: item.publishedQoS)
        self.init(
            topic: item.topic, payload: item.payload,
            qos: published?.qos ?? QoS(rawValue: item.qos) ?? .atLeastOnce,
            retain: item.publishedRetain, wake: published?.wake.rawValue ?? 0,
            expiresAtMs: item.expiresAtMs, messageID: item.messageID, pool: pool)
    }
    /// What the publisher asks of notifications.
    package var wakeRequest: WakeRequest { WakeRequest(rawValue: wake) ?? .byRules }
}
