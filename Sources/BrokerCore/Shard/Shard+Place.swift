import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Parts of queues that the store has read get their places in memory, and are sent.
extension Shard {
    /// Puts a part of the queue into memory and sends it, except positions dropped meanwhile.
    package mutating func place(
        _ slice: QueueSlice, for handle: Handle, dropped: ClosedRange<UInt64>?
    ) {
        let session = connections[handle].session
        var before = sessions[session].outbound
        let firstWaiting = before.firstStored
        var next = slice.next
        slice.forEach { item in
            guard dropped?.contains(item.position) != true else { return }
            guard item.isReleased || TopicText.isName(item.topic) else {
                if item.position < next {
                    leaveOut(item, session, isWaiting: item.position >= firstWaiting)
                }
                return
            }
            if item.position < firstWaiting {
                guard item.position < next else { return }
                if !placeInFlight(item, session, handle) { next = item.position }
            } else if item.position < next, item.isExpired(atMs: context.wallClockMs) {
                finished(session, item.position, .dropped(.expired))
                drop(session, .expired)
                sessions[session].outbound.skipWaiting(
                    item.position, bytes: item.topic.count + item.payload.count)
            } else if item.position < next, belongsToOthers(item, session) {
                // The other member may sweep expired messages, also of this queue, to have room.
                sessions.totals.replace(before, by: sessions[session].outbound)
                pass(item, follower: follower(of: session, item.position), .dropped(.offline))
                before = sessions[session].outbound
                finished(session, item.position, .handedOver)
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
        forgetHoles(session, from: firstWaiting)
        guard let failure = slice.failure else {
            pump(session)
            return
        }
        // The rest stays in the store until the client connects again.
        context.notices.append(
            .unreadable(
                clientID: sessions.identifier(of: session), "\(failure)"))
        end(handle, .storeFailure)
    }

    /// Passes over a message that damage has left without a topic. It stays in the store.
    private mutating func leaveOut(
        _ item: QueueSlice.Item, _ session: UInt32, isWaiting: Bool
    ) {
        if isWaiting {
            sessions[session].outbound.skipWaiting(
                item.position, bytes: item.topic.count + item.payload.count)
        } else {
            sessions[session].outbound.skipSent(item.position)
        }
        context.notices.appendBounded(
            .damagedMessage(clientID: sessions.identifier(of: session), position: item.position))
    }

    /// Re-sends a message of a position that may have been sent; false when no more may be in flight.
    ///
    /// After a crash more positions may have been sent than the client may have in flight. Messages
    /// are sent in their order, so those beyond the first so many never were; one that has expired
    /// since is not sent at all.
    private mutating func placeInFlight(
        _ item: QueueSlice.Item, _ session: UInt32, _ handle: Handle
    ) -> Bool {
        let number = sessions[session].number
        let hasRoom = sessions[session].outbound.loadedInFlight < window(of: handle)
        // A client that takes fewer at a time than before may have had this one.
        let isBeyondAll = sessions[session].outbound.loadedInFlight >= context.limits.maxInFlight
        if isBeyondAll { sessions.loads.noteUnsent(from: item.position, of: number) }
        var item = item
        if item.isExpired(atMs: context.wallClockMs),
            sessions.loads.isUnsent(item.position, of: number)
        {
            endUnsent(&item, session)
            guard item.isReleased else {
                sessions[session].outbound.skipSent(item.position)
                return true
            }
        }
        if hasRoom { placeSent(item, session, handle) }
        return hasRoom
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
        if let message = loaded.message,
            !fits(message, qos: loaded.qos, group: loaded.group, of: session, to: handle)
        {
            sessions[session].outbound.skipSent(item.position)
            finished(session, item.position, .dropped(.tooLarge))
            drop(session, .tooLarge, message)
            message.release(in: context.pool)
            return
        }
        sessions[session].outbound.placeSent(loaded, pool: context.pool)
        if let message = loaded.message {
            resend(
                message, qos: loaded.qos, retain: loaded.retain, item.position,
                group: loaded.group, handle)
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

    /// Delivers a stored message to a member of its group, if there is one; `end` is its end otherwise.
    mutating func pass(_ item: QueueSlice.Item, follower: UInt32, _ end: QueueEnd) {
        let message = Message(item, pool: context.pool)
        pass(
            message, to: subscriptions.group(item.shared), ticket: commits.nextTicket,
            follower: follower, end)
        message.release(in: pool)
    }
}

extension Message {
    /// The message of a queue position, which must still have its content (no PUBREC yet).
    package init(_ item: QueueSlice.Item, pool: BytePool) {
        let published = StoredQoS(byte: item.publishedQoS)
        let content = StoredContent(item.payload, published)
        self.init(
            topic: item.topic, payload: content.payload,
            qos: published?.qos ?? QoS(rawValue: item.qos) ?? .atLeastOnce,
            retain: item.publishedRetain, wake: published?.wake.rawValue ?? 0,
            expiresAtMs: item.expiresAtMs, messageID: item.messageID,
            forwarded: content.forwarded, forwardedSource: content.properties, pool: pool)
    }
    /// What the publisher asks of notifications.
    package var wakeRequest: WakeRequest { WakeRequest(rawValue: wake) ?? .byRules }
}
