import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    /// Acknowledgements that may wait for commits on one connection: more than identifiers exist.
    private static var mostAcknowledgements: UInt32 { 3 * 65_536 }

    // MARK: Inbound PUBLISH and PUBREL

    mutating func receivePublish(
        _ handle: Handle, _ publish: Publish, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle.index].session
        counters.publishesReceived += 1
        counters.publishBytesReceived &+= UInt64(publish.payload.count)
        sessions[session].publishesReceived += 1
        let topic = bytes[publish.topic.range]
        guard isWithinLevels(topic) else {
            doom(handle, .topicLevels)
            return
        }
        let isRefused = refusesTopic(topic, from: session)
        let isPersistent = sessions[session].isPersistent
        switch publish.delivery {
        case .atMostOnce:
            guard !isRefused, mayPublish(handle, topic),
                publish.retain || !routeAtMostOnce(frame, topic, bytes[publish.payload])
            else { return }
            if route(publish, bytes, holdsIdentifier: false) { commitUnwatched() }
        case .atLeastOnce(let identifier, _):
            // Every PUBLISH with this identifier is a new message, whatever its DUP [MQTT-4.3.2-2].
            counters.publishesReceivedAtLeastOnce += 1
            guard isRefused || mayPublish(handle, topic) else { return }
            let needsCommit = !isRefused && route(publish, bytes, holdsIdentifier: false)
            acknowledge(
                handle, .puback, identifier, needsCommit: needsCommit,
                requestBytes: Int(frame.packet.count))
        case .exactlyOnce(let identifier, _):
            counters.publishesReceivedExactlyOnce += 1
            if sessions[session].inbound.contains(identifier) {
                // Answered again, delivered once [MQTT-4.3.3-2].
                acknowledge(handle, .pubrec, identifier, needsCommit: false, requestBytes: 0)
                return
            }
            guard sessions[session].inbound.count < settings.maxInboundQoS2 else {
                doom(handle, .tooManyInboundQoS2)
                return
            }
            guard isRefused || mayPublish(handle, topic) else { return }
            sessions[session].inbound.insert(identifier, pool: pool)
            if isPersistent {
                writes.inbound(
                    session: sessions[session].number, packetIdentifier: identifier.rawValue)
            }
            let needsCommit =
                isRefused
                ? isPersistent : route(publish, bytes, holdsIdentifier: isPersistent)
            acknowledge(
                handle, .pubrec, identifier, needsCommit: needsCommit,
                requestBytes: Int(frame.packet.count))
        }
    }

    /// PUBREL: the identifier means a new message from now on.
    mutating func receivePubrel(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle.index].session
        let isKnown = sessions[session].inbound.remove(identifier, pool: pool)
        let needsCommit = isKnown && sessions[session].isPersistent
        if needsCommit {
            writes.inboundRemoved(
                session: sessions[session].number, packetIdentifier: identifier.rawValue)
        }
        // Also answered when it is unknown: the PUBCOMP before was lost [MQTT-4.3.3-2].
        acknowledge(handle, .pubcomp, identifier, needsCommit: needsCommit, requestBytes: 0)
    }

    /// Sends an acknowledgement now, or behind what must leave before it. `requestBytes` are those of the
    /// PUBLISH or UNSUBSCRIBE that it answers, and 0 for other packets and repeated ones.
    mutating func acknowledge(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, needsCommit: Bool,
        requestBytes: Int
    ) {
        let word = PacketEncoder.fourBytes(type, identifier)
        guard needsCommit || !connections[handle.index].acknowledgements.isEmpty else {
            connections[handle.index].output.append(4, pool: pool)
                .storeBytes(of: word.littleEndian, as: UInt32.self)
            counters.otherPacketsSent += 1
            markDirty(handle)
            if requestBytes > 0, type != .unsuback {
                pauseIfNeeded(handle)
            } else {
                limitOutput(handle)
            }
            return
        }
        let ticket = needsCommit ? commit(.acknowledge(handle)) : 0
        connections[handle.index].acknowledgements.append(
            word: word, ticket: ticket, requestBytes: requestBytes, pool: pool)
        pauseIfNeeded(handle, isPublisher: type != .unsuback)
        // Reading PUBREL is never stopped, so what it makes us owe has an end of its own.
        if connections[handle.index].acknowledgements.count > Self.mostAcknowledgements {
            doom(handle, .outputLimit)
        }
    }

    /// A peer that sends and never reads: its own answers must not fill our memory.
    mutating func limitOutput(_ handle: Handle) {
        let limit =
            2 * settings.outputBytes + settings.maxPacketBytes
            + Int(connections[handle.index].resentBytes)
        if connections[handle.index].output.count > limit { doom(handle, .outputLimit) }
    }

    /// A client is not read while too much of what it sent waits for the store, or, as a publisher, while
    /// it does not take the acknowledgements that it got.
    mutating func pauseIfNeeded(_ handle: Handle, isPublisher: Bool = true) {
        let waiting = connections[handle.index].acknowledgements
        guard !connections[handle.index].isPaused,
            Int(waiting.requests) >= settings.maxUnacknowledgedPublishes
                || waiting.requestBytes >= settings.maxUnacknowledgedPublishBytes
                || (isPublisher
                    && connections[handle.index].output.count >= settings.outputBytes)
        else { return }
        connections[handle.index].isPaused = true
        notePausingLimit(waiting)
        notePause(handle, true)
    }

    /// Commits completed: acknowledgements leave, in order.
    mutating func releaseAcknowledgements(_ handle: Handle) {
        guard isCurrent(handle), !connections[handle.index].isDoomed else { return }
        var queue = connections[handle.index].acknowledgements
        if isRigged { Failpoint.beforeAcknowledge.reach() }
        let released = queue.release(to: &connections[handle.index].output, pool: pool) { ticket in
            commits.isCommitted(ticket)
        }
        if isRigged { reachFailpoints(released) }
        counters.otherPacketsSent += UInt64(
            connections[handle.index].acknowledgements.count - queue.count)
        connections[handle.index].acknowledgements = queue
        markDirty(handle)
        limitOutput(handle)
        resumeIfPossible(handle)
    }

    private func reachFailpoints(_ released: AcknowledgementQueue.Types) {
        if released.contains(.pubrec) { Failpoint.pubrec.reach() }
        if released.contains(.pubrel) { Failpoint.pubrel.reach() }
        if released.contains(.pubcomp) { Failpoint.pubcomp.reach() }
    }

    /// A paused publisher goes on at half of each limit.
    mutating func resumeIfPossible(_ handle: Handle) {
        let waiting = connections[handle.index].acknowledgements
        guard connections[handle.index].isPaused, !connections[handle.index].awaitsStore,
            Int(waiting.requests) <= settings.maxUnacknowledgedPublishes / 2,
            waiting.requestBytes <= settings.maxUnacknowledgedPublishBytes / 2,
            connections[handle.index].output.count <= settings.outputBytes / 2
        else { return }
        connections[handle.index].isPaused = false
        counters.publishersPaused -= 1
        // Its keep alive counts from here: the silence was ours.
        connections[handle.index].lastPacket = now
        resumed.append(handle)
        notePause(handle, false)
    }

    mutating func notePause(_ handle: Handle, _ isPaused: Bool) {
        let session = connections[handle.index].session
        guard reportsLifecycle, session != noIndex else { return }
        notices.append(
            .paused(
                handle, clientIdentifier: sessions[session].clientIdentifier.array, isPaused))
    }

    // MARK: Routing

    /// QoS 0 without RETAIN, the common case: a copy of the packet per receiver. False when it has to
    /// go the general way.
    private mutating func routeAtMostOnce(
        _ frame: PacketDecoder.Frame, _ topic: UnsafeRawBufferPointer,
        _ payload: UnsafeRawBufferPointer
    ) -> Bool {
        let size = PublishEncoder.size(
            topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
        guard payload.count < 16 * 1_024, size == Int(frame.packet.count) else { return false }
        // The packet begins where its topic stands, less the fixed header and the topic's length.
        guard let topicBase = topic.baseAddress else { return false }
        let packet = UnsafeRawBufferPointer(
            start: topicBase - (size - topic.count - payload.count), count: size)
        let sent = counters.publishesSent
        for match in receivers(of: topic) { deliverAtMostOnce(packet, to: match.session) }
        if !shared.isEmpty {
            for choice in chooseMembers(topic, qos: .atMostOnce) {
                deliverAtMostOnce(packet, to: choice.session)
            }
        }
        counters.publishBytesSent &+= (counters.publishesSent &- sent) &* UInt64(payload.count)
        return true
    }

    @inline(__always)
    private mutating func deliverAtMostOnce(_ packet: UnsafeRawBufferPointer, to session: UInt32) {
        guard let target = sessions[session].connection, connections[target.index].isOpen else {
            drop(session, .away)
            return
        }
        guard connections[target.index].output.count < settings.outputBytes else {
            drop(session, .slowReader)
            return
        }
        sessions[session].publishesSent += 1
        counters.publishesSent += 1
        connections[target.index].output.append(packet, pool: pool)
        markDirty(target)
    }

    /// Routes a client's message; true when its acknowledgement has to wait for a commit.
    private mutating func route(
        _ publish: Publish, _ bytes: UnsafeRawBufferPointer, holdsIdentifier: Bool
    ) -> Bool {
        let message = Message(
            topic: bytes[publish.topic.range], payload: bytes[publish.payload],
            qos: publish.delivery.qos,
            retain: publish.retain, pool: pool)
        defer { message.release(in: pool) }
        return route(message, mustCommit: holdsIdentifier).needsCommit
    }

    // Inlined: for a call of a method that does not mutate, the compiler copies the whole shard.
    @inline(__always)
    func isWithinLevels(_ topic: UnsafeRawBufferPointer) -> Bool {
        // A short topic cannot have too many levels, and most topics are short.
        topic.count < settings.maxTopicLevels
            || TopicLevels.count(topic) <= settings.maxTopicLevels
    }

    /// Hands a message to every session that wants it [MQTT-4.5.0-1]; the caller keeps its reference.
    ///
    /// A message that is stored for anybody reaches everybody after the commit of the group that the
    /// caller ends when `needsCommit` comes back true: no receiver sees what a crash could take back.
    mutating func route(
        _ message: Message, mustCommit: Bool
    ) -> (counts: PublishCounts, needsCommit: Bool) {
        let matches = receivers(of: message.topic)
        let choices = shared.isEmpty ? nil : chooseMembers(message.topic, qos: message.qos)
        let retaining = message.retain ? retaining(message) : .nothing
        var needsCommit = mustCommit || retaining != .nothing
        if !needsCommit, message.qos != .atMostOnce {
            needsCommit =
                matches.contains { $0.qos != .atMostOnce && sessions[$0.session].isPersistent }
                || choices?.contains {
                    $0.qos != .atMostOnce && sessions[$0.session].isPersistent
                } == true
        }
        // The group's ticket is the next one; its caller takes it before anything else is written.
        let ticket = needsCommit && message.qos != .atMostOnce ? writes.lastTicket + 1 : 0
        var number: UInt64 = 0
        if retaining != .nothing {
            if ticket != 0 { retainedTicket = ticket }
            if retaining == .keep { number = record(message) }
            retain(message, number, retaining)
        }
        var counts = PublishCounts()
        counts.matched = matches.count
        for match in matches {
            let qos = min(message.qos, match.qos)  // [MQTT-3.8.4-6]
            if qos != .atMostOnce, sessions[match.session].isPersistent, number == 0 {
                number = record(message)
            }
            deliver(
                message, number, to: match.session, qos: qos, retain: false, ticket: ticket,
                &counts)
        }
        if let choices {
            counts.matched += choices.count
            for choice in choices {
                let qos = min(message.qos, choice.qos)
                if qos != .atMostOnce, sessions[choice.session].isPersistent, number == 0 {
                    number = record(message)
                }
                deliver(
                    message, number, to: choice.session, qos: qos, retain: false, ticket: ticket,
                    group: choice.group, &counts)
            }
        }
        return (counts, needsCommit)
    }

    /// Writes the content of a message, for records that refer to it by the number returned.
    mutating func record(_ message: Message) -> UInt64 {
        messageNumber += 1
        writes.message(
            messageNumber, topic: message.topic, payload: message.payload,
            qos: message.qos.rawValue, retain: message.retain, expiresAtMs: message.expiresAtMs)
        return messageNumber
    }
}
