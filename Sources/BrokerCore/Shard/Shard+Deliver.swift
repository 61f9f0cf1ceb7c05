import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Delivers a message to one session's queue, and from there to its client.
extension Shard {
    // MARK: Into the queue

    /// Queues a message for one session, and sends messages that may leave.
    package mutating func deliver(
        _ delivery: inout RoutedMessage, to session: UInt32, qos: QoS, _ counts: inout PublishCounts
    ) {
        let message = delivery.message
        // No packet precedes CONNACK [MQTT-3.2.0-1].
        let target = sessions[session].connection.flatMap {
            connections[$0].machine.isOpen ? $0 : nil
        }
        guard target != nil || sessions[session].isUsed else {
            counts.matched -= 1
            return
        }
        counts.online += target == nil ? 0 : 1
        guard !message.isExpired(atMs: context.wallClockMs) else {
            counts.dropped += 1
            endAtOnce(delivery, session, .dropped(.expired))
            drop(session, .expired, message)
            return
        }
        if qos == .atMostOnce {
            guard let target else {
                counts.dropped += 1
                endAtOnce(delivery, session, .dropped(.offline))
                drop(session, .offline)
                return
            }
            // Queued if other messages wait, to keep the order [MQTT-4.6.0-6]. Otherwise sent at
            // once, without a queue position.
            if delivery.ticket == 0,
                sessions[session].outbound.waiting == 0 || message.qos == .atMostOnce
            {
                let end = sendAtMostOnce(
                    message, retain: delivery.retain, group: delivery.group, to: session, target,
                    &counts)
                endAtOnce(delivery, session, end)
                return
            }
        }
        if commits.isDurable, sessions[session].isPersistent {
            deliverDurably(
                &delivery, to: session, qos: qos, isConnected: target != nil, &counts)
            return
        }
        guard makeRoom(in: session, for: message, isStored: false) else {
            counts.dropped += 1
            endAtOnce(delivery, session, .dropped(.queueFull))
            drop(session, .queueFull, message)
            return
        }
        if target == nil { counts.queued += 1 }
        follow(delivery, session, at: sessions[session].outbound.end)
        noteExpiry(message, session, at: sessions[session].outbound.end)
        noteQueued(&delivery, session, at: sessions[session].outbound.end)
        append(delivery, to: session, qos: qos)
        sessions.totals.queued(bytes: message.contentBytes)
        pump(session)
    }

    private mutating func sendAtMostOnce(
        _ message: Message, retain: Bool, group: UInt32, to session: UInt32, _ target: Handle,
        _ counts: inout PublishCounts
    ) -> QueueEnd {
        guard connections[target].outlet.count < context.limits.outputBytes else {
            counts.dropped += 1
            drop(session, .slowReader, message)
            return .dropped(.slowReader)
        }
        guard
            append(
                message, qos: .atMostOnce, retain: retain, isDuplicate: false, identifier: 0,
                group: group, of: session, to: target)
        else {
            counts.dropped += 1
            drop(session, .tooLarge, message)
            return .dropped(.tooLarge)
        }
        sessions[session].publishesSent += 1
        context.counters.publishSent(.atMostOnce, payloadBytes: message.payload.count)
        connections.markDirty(target)
        return .sent
    }

    /// Stores a message for a persistent session; memory keeps it only if it is to be sent soon.
    private mutating func deliverDurably(
        _ delivery: inout RoutedMessage, to session: UInt32, qos: QoS, isConnected: Bool,
        _ counts: inout PublishCounts
    ) {
        let message = delivery.message
        let isInWindow =
            isConnected
            && QueueWindow.takes(
                message.contentBytes, sessions[session].outbound,
                queueBytes: context.limits.queueBytes)
        guard isInWindow || makeRoom(in: session, for: message, isStored: true) else {
            counts.dropped += 1
            endAtOnce(delivery, session, .dropped(.queueFull))
            drop(session, .queueFull, message)
            return
        }
        if !isConnected { counts.queued += 1 }
        if delivery.number == 0 { delivery.number = record(message) }
        let (number, position) = (sessions[session].number, sessions[session].outbound.end)
        commits.records.queued(
            session: number, position: position, message: delivery.number, qos: qos.rawValue,
            retain: delivery.retain, isInWindow: isInWindow)
        follow(delivery, session, at: position)
        noteExpiry(message, session, at: position)
        if delivery.group != noIndex {
            sessions[session].noteShared()
            subscriptions.filter(of: delivery.group).withBytes {
                commits.records.shared(session: number, position: position, filter: $0)
            }
        }
        sessions.totals.queued(bytes: message.contentBytes)
        noteQueued(&delivery, session, at: position)
        guard isInWindow else {
            _ = sessions[session].outbound.store(bytes: message.contentBytes)
            if isConnected { loadMore(session) }
            return
        }
        append(delivery, to: session, qos: qos)
        pump(session)
    }

    private mutating func append(_ delivery: RoutedMessage, to session: UInt32, qos: QoS) {
        delivery.message.retainReference()
        sessions[session].outbound.append(
            delivery.message, qos: qos, retain: delivery.retain, ticket: delivery.ticket,
            group: delivery.group, pool: context.pool)
    }

    /// Keeps the session's queue within its limits; false when the new message must be dropped.
    ///
    /// The limit on messages applies while the client is offline; the limit on bytes always.
    /// `isStored` means that the store has the queue, and memory only a window of it.
    private mutating func makeRoom(
        in session: UInt32, for message: Message, isStored: Bool
    ) -> Bool {
        // It could never fit, so no other message is dropped for it.
        guard message.contentBytes <= context.limits.queueBytes else {
            context.counters.limits.add(.queueBytes)
            return false
        }
        let isConnected = sessions[session].connection != nil
        var hasSwept = false
        while true {
            if !isStored, sessions[session].outbound.isFull {
                // Dropping leaves holes. Without holes, the queue is full of messages in flight.
                closeHoles(session)
                guard !sessions[session].outbound.isFull else { return false }
            }
            if isStored { passHoles(session) }
            let queue = sessions[session].outbound
            guard !context.hasRoom(in: queue, bytes: message.contentBytes, isConnected: isConnected)
            else {
                return true
            }
            if !hasSwept {
                // What is dead takes no place from what lives.
                hasSwept = true
                if sweepForRoom() { continue }
            }
            context.counters.limits.add(
                queue.waiting >= context.mostWaiting(isConnected: isConnected)
                    ? .queueMessages : .queueBytes)
            guard context.limits.queuePolicy == .dropOldest,
                let position =
                    sessions[session].outbound.dropOldestWaiting(pool: context.pool)
                    ?? (isStored ? sessions[session].outbound.dropOldestStored() : nil)
            else { return false }
            sessions.totals.replace(queue, by: sessions[session].outbound)
            finished(session, position, .dropped(.queueFull))
            forgetHoles(session, from: queue.firstStored)
            if queue.loadedWaiting == 0 { noteDroppedInStore(session, position) }
            drop(session, .queueFull)
        }
    }

    /// Counts a dropped message that only the store held.
    private mutating func noteDroppedInStore(_ session: UInt32, _ position: UInt64) {
        let number = sessions[session].number
        sessions.loads.noteDropped(position, of: number)
        // Messages being loaded count as sent, so the horizon stays above them.
        commits.records.horizon(
            session: number, position: max(position + 1, sessions.loads.below(of: number)))
    }

    /// Records a message's content; other records refer to it by the returned number.
    package mutating func record(_ message: Message) -> UInt64 {
        let number = commits.newMessageNumber()
        commits.records.message(
            number, topic: message.topic, payload: message.storedPayload,
            qos: StoredQoS(
                message.qos, message.wakeRequest, hasProperties: message.hasProperties
            ).byte, retain: message.retain,
            expiresAtMs: message.expiresAtMs)
        if !message.messageID.isEmpty {
            commits.records.named(number, messageID: message.messageID)
        }
        return number
    }

    // MARK: To the client

    /// Sends waiting messages in order, within the in-flight window and the room in the output.
    @inline(__always)
    package mutating func pump(_ session: UInt32) {
        // Most acknowledgements leave nothing to send.
        if sessions[session].outbound.hasWaiting {
            sendWaiting(session)
        } else {
            noteQueueChecked(session)
        }
    }

    /// Sends from a queue that is not empty. One whose messages have to be checked again may take
    /// several turns.
    @inline(never)
    private mutating func sendWaiting(_ session: UInt32) {
        guard let target = sessions[session].connection, connections[target].machine.isActive
        else { return }
        let bound = rights.steps + WorkBudget.mostRuleSteps
        let window = window(of: target)
        while true {
            guard rights.steps <= bound else {
                rechecks.add(target)
                return
            }
            guard connections[target].outlet.count < context.limits.outputBytes else {
                if connections[target].machine.setThrottled(true) {
                    context.counters.limits.add(.outputBytes)
                }
                return
            }
            let next = sessions[session].outbound.next(
                limit: window, pool: context.pool
            ) { ticket in
                // A message loaded from the store waits for all tickets up to its own.
                commits.areCommitted(through: ticket)
            }
            switch next {
            case .nothing:
                if sessions[session].outbound.loadedWaiting > 0 {
                    context.counters.limits.add(.maxInFlight)
                }
                if sessions[session].outbound.isStoring { loadMore(session) }
                noteQueueChecked(session)
                return
            case .awaitsCommit:
                sessions.awaitCommit(session)
                return
            case .send(let item): send(item, of: session, to: target)
            }
            guard sessions[session].outbound.hasWaiting else {
                noteQueueChecked(session)
                return
            }
        }
    }

    @inline(__always)
    private mutating func send(
        _ item: OutboundQueue.Item, of session: UInt32, to target: Handle
    ) {
        sessions.totals.dequeued(bytes: item.message.contentBytes)
        guard !item.message.isExpired(atMs: context.wallClockMs) else {
            finished(session, item.position, .dropped(.expired))
            drop(session, .expired, item.message)
            sessions[session].outbound.abandon(item, pool: context.pool)
            return
        }
        guard rights.mayStillReceive(item.message.topic, sessions[session]) else {
            revoke(session, item.message.topic, item.position)
            sessions[session].outbound.abandon(item, pool: context.pool)
            return
        }
        guard
            append(
                item.message, qos: item.qos, retain: item.retain, isDuplicate: false,
                identifier: item.packetIdentifier.rawValue,
                group: item.group, of: session, to: target)
        else {
            giveUp(item, of: session)
            return
        }
        context.counters.publishSent(item.qos, payloadBytes: item.message.payload.count)
        if item.qos == .atMostOnce {
            if commits.isDurable {
                finished(session, item.position, .sent)
            } else {
                positionEnded(session, item.position, .sent)
            }
            item.message.release(in: context.pool)
        } else {
            sessions[session].publishesSentAboveQoS0 += 1
            sessions.totals.sent()
            if context.isRigged { Failpoint.deliver.reach() }
        }
        sessions[session].publishesSent += 1
        connections.markDirty(target)
    }

    /// Drops a message that is too large for its receiver, as if it had been sent [MQTT-3.1.2-25].
    @inline(never)
    mutating func giveUp(_ item: OutboundQueue.Item, of session: UInt32) {
        finished(session, item.position, .dropped(.tooLarge))
        drop(session, .tooLarge, item.message)
        sessions[session].outbound.abandon(item, pool: context.pool)
    }
}
