import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Handles a connection's packets.
extension Shard {
    /// First byte of a TLS handshake record (RFC 8446, section 5.1). No CONNECT begins with it,
    /// since its reserved bits are 0 [MQTT-2.2.2-1].
    private static var tlsHandshakeRecord: UInt8 { 22 }

    /// Handles all complete packets in `bytes` and returns the number of bytes consumed. The caller
    /// offers the rest again, with more input or when the turn resumes the connection.
    ///
    /// `token` came before CONNECT, in the request for WebSocket, and stands for the password of a
    /// CONNECT that has none; empty when there is none.
    public mutating func receive(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer,
        token: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) -> Int {
        guard connections.isCurrent(handle) else { return bytes.count }
        context.budget.beginShare()
        connections.beginSource()
        var offset = 0
        while offset < bytes.count {
            guard !connections[handle].machine.isEnding else { return bytes.count }
            guard !connections[handle].machine.holdsInput, !connections[handle].intake.isPaused
            else { break }
            let isFirst = connections[handle].machine.isAwaitingConnect
            let limit =
                isFirst ? context.limits.maxConnectPacketBytes : context.limits.maxPacketBytes
            do throws(MalformedPacket) {
                switch try PacketDecoder.frame(bytes.bytes, at: offset, maximumSize: limit) {
                case .incomplete:
                    // Reject a first packet other than CONNECT by its first byte.
                    if isFirst, bytes[offset] >> 4 != PacketType.connect.rawValue {
                        endStranger(handle, .firstPacketNotConnect, bytes, offset)
                        return bytes.count
                    }
                    if commits.holdsMessages { awaitStoreEarly(handle, bytes, offset) }
                    return offset
                case .frame(let frame):
                    guard context.budget.admits(frame.type) else {
                        connections.awaitTurn(handle)
                        return offset
                    }
                    if commits.holdsMessages, awaitsStore(handle, frame, bytes) { return offset }
                    if filterRequests.isEmpty || !filterRequests.contains(handle) {
                        context.counters.packetsReceived += 1
                        try process(handle, frame, bytes, token)
                    } else {
                        continueFilters(handle, frame, bytes)
                    }
                    context.budget.spend(WorkBudget.packet)
                    if rights.hasWork { chargeRights() }
                    if connections[handle].intake.awaitsTurn { return offset }
                    offset = frame.packet.end
                    // The keep alive counts complete packets, not bytes [MQTT-3.1.2-24].
                    connections[handle].keepAlive.heard(at: context.now)
                }
            } catch {
                endMalformed(handle, error, bytes, offset)
                return bytes.count
            }
        }
        return offset
    }

    private mutating func process(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer,
        _ token: UnsafeRawBufferPointer
    ) throws(MalformedPacket) {
        if frame.type == .connect {
            // A second CONNECT is a violation even if it is malformed.
            try receiveConnect(handle, frame, bytes, token)
            return
        }
        switch connections[handle].machine.receive(frame.type) {
        case .process: break
        case .ignore: return
        case .close(.firstPacketNotConnect):
            endStranger(handle, .firstPacketNotConnect, bytes, frame.packet.start)
            return
        case .close(let violation):
            end(handle, .protocolViolation(violation))
            return
        }
        // A malformed DISCONNECT is a violation, so the will is published [MQTT-3.14.1-1].
        switch try PacketDecoder.decode(frame, bytes.bytes) {
        case .publish(let publish): receivePublish(handle, publish, frame, bytes)
        case .puback(let identifier): receiveFinal(handle, .puback, identifier)
        case .pubrec(let identifier): receivePubrec(handle, identifier)
        case .pubrel(let identifier): receivePubrel(handle, identifier)
        case .pubcomp(let identifier): receiveFinal(handle, .pubcomp, identifier)
        case .subscribe(let subscribe): receiveSubscribe(handle, subscribe, frame, bytes)
        case .unsubscribe(let unsubscribe):
            receiveUnsubscribe(handle, unsubscribe, frame, bytes)
        case .pingreq:
            connections[handle].notePing(at: context.now)
            // [MQTT-3.12.4-1]
            connections[handle].outlet.appendPingresp(pool: pool)
            context.counters.otherPacketsSent += 1
            connections.markDirty(handle)
            limitOutput(handle)
        case .disconnect:
            end(handle, .disconnect)
        case .connect, .connack, .suback, .unsuback, .pingresp:
            preconditionFailure("the connection machine let \(frame.type) pass")
        }
    }

    /// Ends a connection whose first packet, at `offset`, is not CONNECT.
    private mutating func endStranger(
        _ handle: Handle, _ violation: ProtocolViolation, _ bytes: UnsafeRawBufferPointer,
        _ offset: Int
    ) {
        let opening = ForeignProtocol(
            beginning: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
        end(handle, .protocolViolation(violation), opening: opening)
    }

    /// Closes after a malformed packet; only an unsupported level gets CONNACK [MQTT-3.1.2-2].
    private mutating func endMalformed(
        _ handle: Handle, _ error: MalformedPacket, _ bytes: UnsafeRawBufferPointer, _ offset: Int
    ) {
        guard connections[handle].machine.isAwaitingConnect else {
            end(handle, .protocolViolation(.malformed(error)))
            return
        }
        if bytes[offset] == Self.tlsHandshakeRecord {
            end(handle, .tlsOnPlainListener)
        } else if case .unsupportedProtocolLevel = error {
            refuseConnect(
                handle, .unacceptableProtocolVersion, .unacceptableProtocolVersion, [],
                userName: nil)
        } else {
            endStranger(handle, .malformed(error), bytes, offset)
        }
    }

    // MARK: PUBLISH and PUBREL of a publisher

    private mutating func receivePublish(
        _ handle: Handle, _ publish: Publish, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle].session
        context.counters.publishesReceived += 1
        context.counters.publishBytesReceived &+= UInt64(publish.payload.count)
        sessions[session].publishesReceived += 1
        let topic = bytes[publish.topic.range]
        guard context.isWithinLevels(topic) else {
            end(handle, .topicLevels)
            return
        }
        if context.topicTraces.isActive {
            tracePublish(
                topic, bytes[publish.payload], qos: publish.delivery.qos, retain: publish.retain,
                from: session)
        }
        guard !isFeatureTopic(topic) else {
            receiveForFeature(handle, publish, frame, bytes)
            return
        }
        let isReserved = dropsReserved(topic, from: session)
        let isPersistent = sessions[session].isPersistent
        switch publish.delivery {
        case .atMostOnce:
            guard !isReserved, mayPublish(handle, topic) else { return }
            let payload = bytes[publish.payload]
            guard
                let matches = publish.retain
                    ? receivers(of: topic, qos: .atMostOnce, from: handle)
                    : receivers(
                        of: topic, payload, packetBytes: frame.packet.count, from: handle)
            else {
                withdraw(publish, session)
                return
            }
            if publish.retain
                || !routeAtMostOnce(frame, topic, payload, to: matches, from: handle),
                route(publish, bytes, to: matches, from: handle, holdsIdentifier: false)
            {
                commit()
            }
        case .atLeastOnce(let identifier, _):
            // Every PUBLISH of QoS 1 is a new message, whatever its DUP [MQTT-4.3.2-2].
            context.counters.publishesReceivedAtLeastOnce += 1
            guard isReserved || mayPublish(handle, topic) else { return }
            var needsCommit = false
            if !isReserved {
                guard let matches = receivers(of: topic, qos: publish.delivery.qos, from: handle)
                else {
                    withdraw(publish, session)
                    return
                }
                needsCommit = route(
                    publish, bytes, to: matches, from: handle, holdsIdentifier: false)
            }
            acknowledge(
                handle, .puback, identifier, needsCommit: needsCommit,
                requestBytes: Int(frame.packet.count))
        case .exactlyOnce(let identifier, _):
            context.counters.publishesReceivedExactlyOnce += 1
            if sessions[session].inbound.contains(identifier) {
                // Acknowledged again but delivered once [MQTT-4.3.3-2].
                acknowledge(handle, .pubrec, identifier, needsCommit: false, requestBytes: 0)
                return
            }
            guard sessions[session].inbound.count < context.limits.maxInboundQoS2 else {
                end(handle, .tooManyInboundQoS2)
                return
            }
            guard isReserved || mayPublish(handle, topic) else { return }
            var matches: UnsafeBufferPointer<SubscriptionTrie.Match>?
            if !isReserved {
                matches = receivers(of: topic, qos: publish.delivery.qos, from: handle)
                guard matches != nil else {
                    withdraw(publish, session)
                    return
                }
            }
            sessions[session].inbound.insert(identifier, pool: pool)
            if isPersistent {
                commits.records.inbound(
                    session: sessions[session].number, packetIdentifier: identifier.rawValue)
            }
            let needsCommit =
                matches.map {
                    route(publish, bytes, to: $0, from: handle, holdsIdentifier: isPersistent)
                }
                ?? isPersistent
            acknowledge(
                handle, .pubrec, identifier, needsCommit: needsCommit,
                requestBytes: Int(frame.packet.count))
        }
        if mayBeRead(topic) { followers.read(&self, topic, bytes[publish.payload], from: session) }
    }

    /// Takes back what was counted for a PUBLISH that will be offered again.
    @inline(never)
    private mutating func withdraw(_ publish: Publish, _ session: UInt32) {
        context.counters.packetsReceived -= 1
        context.counters.publishesReceived -= 1
        context.counters.publishBytesReceived &-= UInt64(publish.payload.count)
        sessions[session].publishesReceived -= 1
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce: context.counters.publishesReceivedAtLeastOnce -= 1
        case .exactlyOnce: context.counters.publishesReceivedExactlyOnce -= 1
        }
    }

    /// Routes a client's message; true when its acknowledgement must wait for a commit.
    private mutating func route(
        _ publish: Publish, _ bytes: UnsafeRawBufferPointer,
        to matches: UnsafeBufferPointer<SubscriptionTrie.Match>, from publisher: Handle,
        holdsIdentifier: Bool
    ) -> Bool {
        let message = Message(
            topic: bytes[publish.topic.range], payload: bytes[publish.payload],
            qos: publish.delivery.qos, retain: publish.retain,
            arrivedMs: context.now.arrivalStamp, pool: pool)
        defer { message.release(in: pool) }
        return route(
            message, to: matches, mustCommit: holdsIdentifier, from: .connection(publisher)
        ).needsCommit
    }

    /// Handles PUBREL, which frees the identifier.
    private mutating func receivePubrel(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle].session
        let isKnown = sessions[session].inbound.remove(identifier, pool: pool)
        let needsCommit = isKnown && sessions[session].isPersistent
        if needsCommit {
            commits.records.inboundRemoved(
                session: sessions[session].number, packetIdentifier: identifier.rawValue)
        }
        // Also for an unknown identifier: the former PUBCOMP may have been lost [MQTT-4.3.3-2].
        acknowledge(handle, .pubcomp, identifier, needsCommit: needsCommit, requestBytes: 0)
    }

    // MARK: A receiver's acknowledgements

    /// Handles PUBACK and PUBCOMP, the receiver's last acknowledgements.
    private mutating func receiveFinal(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier
    ) {
        let session = connections[handle].session
        let received =
            type == .puback
            ? sessions[session].outbound.acknowledge(identifier, pool: pool)
            : sessions[session].outbound.complete(identifier, pool: pool)
        if case .violation(let awaited) = received {
            end(handle, .protocolViolation(.wrongAcknowledgement(type, awaited: awaited)))
        }
        guard case .accepted(let position, let arrivedMs) = received else {
            if type == .pubcomp,
                let position = sessions[session].outbound.storedPosition(of: identifier)
            {
                sessions.loads.noteCompleted(position, of: sessions[session].number)
            }
            return
        }
        sessions.totals.finished()
        acknowledged(
            session, position, type == .puback ? .atLeastOnce : .exactlyOnce, arrivedMs: arrivedMs)
        pump(session)
        resumeRetained(session)
    }

    private mutating func receivePubrec(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle].session
        var needsCommit = false
        switch sessions[session].outbound.markReceived(identifier, pool: pool) {
        case .accepted(let position, _):
            if sessions[session].isPersistent {
                commits.records.released(
                    session: sessions[session].number, position: position)
                needsCommit = true
            }
            // From now on the receiver owns the message, and the broker has deleted it.
            positionEnded(session, position, .acknowledged)
        case .violation(let awaited):
            end(handle, .protocolViolation(.wrongAcknowledgement(.pubrec, awaited: awaited)))
            return
        case .repeated: break
        case .unknown:
            // PUBREL answers an unknown identifier too, so that the receiver can end the exchange.
            needsCommit = releaseStored(session, identifier)
        }
        acknowledge(handle, .pubrel, identifier, needsCommit: needsCommit, requestBytes: 0)
    }

    /// Records PUBREC for a message in flight that only the store has, so that it is never sent
    /// again once PUBREL has left [MQTT-4.3.3-1]; false when there can be none with this identifier,
    /// or when its PUBREC has come before.
    @inline(never)
    private mutating func releaseStored(_ session: UInt32, _ identifier: PacketIdentifier) -> Bool {
        let number = sessions[session].number
        guard let position = sessions[session].outbound.storedPosition(of: identifier),
            sessions.loads.noteReleased(position, of: number)
        else { return false }
        commits.records.released(session: number, position: position)
        return true
    }
}
