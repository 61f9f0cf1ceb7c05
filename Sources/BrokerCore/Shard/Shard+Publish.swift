import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// PUBLISH and PUBREL of a publisher of any version.
extension Shard {
    /// Inlined where each version comes in, so that neither asks for the other's parts.
    @inline(__always)
    mutating func receivePublish(_ handle: Handle, _ publish: IncomingPublish) {
        let session = connections[handle].session
        context.counters.publishesReceived += 1
        context.counters.publishBytesReceived &+= UInt64(publish.payload.count)
        sessions[session].publishesReceived += 1
        let topic = publish.topic
        guard context.isWithinLevels(topic) else {
            refuse(handle, publish, .topicNameInvalid, .topicLevels)
            return
        }
        if context.topicTraces.isActive {
            tracePublish(
                topic, publish.payload, qos: publish.delivery.qos, retain: publish.retain,
                from: session)
        }
        guard !isFeatureTopic(topic) else {
            receiveForFeature(handle, publish)
            return
        }
        let isReserved = dropsReserved(topic, from: session)
        let isPersistent = sessions[session].isPersistent
        switch publish.delivery {
        case .atMostOnce:
            guard !isReserved, mayPublish(handle, publish) else { return }
            let raw = publish.retain ? nil : publish.raw
            guard
                let matches = publish.retain
                    ? receivers(of: topic, qos: .atMostOnce, from: handle)
                    : receivers(of: topic, raw, from: handle)
            else {
                withdraw(publish, session)
                return
            }
            if raw.map({
                routeAtMostOnce($0, topic, publish.payload.count, to: matches, from: handle)
            }) != true,
                route(publish, to: matches, from: handle, holdsIdentifier: false).needsCommit
            {
                commit()
            }
        case .atLeastOnce(let identifier, _):
            // Every PUBLISH of QoS 1 is a new message, whatever its DUP [MQTT-4.3.2-2].
            context.counters.publishesReceivedAtLeastOnce += 1
            guard isReserved || mayPublish(handle, publish) else { return }
            var routed = (needsCommit: false, code: ReasonCode.success)
            if !isReserved {
                guard let matches = receivers(of: topic, qos: publish.delivery.qos, from: handle)
                else {
                    withdraw(publish, session)
                    return
                }
                routed = route(publish, to: matches, from: handle, holdsIdentifier: false)
            }
            acknowledge(
                handle, .puback, identifier, routed.code, needsCommit: routed.needsCommit,
                requestBytes: publish.packetBytes)
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
            guard isReserved || mayPublish(handle, publish) else { return }
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
            let routed =
                matches.map {
                    route(publish, to: $0, from: handle, holdsIdentifier: isPersistent)
                }
                ?? (needsCommit: isPersistent, code: .success)
            if routed.code.isFailure { forgetInbound(identifier, session) }
            acknowledge(
                handle, .pubrec, identifier, routed.code, needsCommit: routed.needsCommit,
                requestBytes: publish.packetBytes)
        }
        if mayBeRead(topic) { followers.read(&self, topic, publish.payload, from: session) }
    }

    /// Takes back what was counted for a PUBLISH that will be offered again.
    @inline(never)
    private mutating func withdraw(_ publish: IncomingPublish, _ session: UInt32) {
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

    /// Routes a client's message; `needsCommit` when its acknowledgement must wait for a commit. `code` is
    /// what PUBACK or PUBREC of 5.0 says.
    @inline(__always)
    private mutating func route(
        _ publish: IncomingPublish, to matches: UnsafeBufferPointer<SubscriptionTrie.Match>,
        from publisher: Handle, holdsIdentifier: Bool
    ) -> (needsCommit: Bool, code: ReasonCode) {
        let message = Message(
            topic: publish.topic, payload: publish.payload,
            qos: publish.delivery.qos, retain: publish.retain,
            expiresAtMs: publish.expiresAtMs, arrivedMs: context.now.arrivalStamp,
            forwarded: publish.forwarded, forwardedSource: publish.bytes, pool: pool)
        defer { message.release(in: pool) }
        let (counts, needsCommit) = route(
            message, to: matches, mustCommit: holdsIdentifier, from: .connection(publisher),
            ownSession: ownSession(of: publisher, publish.topic))
        guard publish.is5 else { return (needsCommit, .success) }
        if let reason = counts.notRetained, reason != .expired {
            return (needsCommit, .quotaExceeded)
        }
        let reachesNobody = counts.matched == 0 && !publish.retain
        return (needsCommit, reachesNobody ? .noMatchingSubscribers : .success)
    }

    /// Forgets the identifier of a message of QoS 2 that PUBREC refuses, so that the next PUBLISH with it
    /// is another message [MQTT-4.3.3-9].
    private mutating func forgetInbound(_ identifier: PacketIdentifier, _ session: UInt32) {
        guard sessions[session].inbound.remove(identifier, pool: pool),
            sessions[session].isPersistent
        else { return }
        commits.records.inboundRemoved(
            session: sessions[session].number, packetIdentifier: identifier.rawValue)
    }

    /// Refuses a PUBLISH: by a code where the version has one and somebody waits for it, else by the end
    /// of the connection.
    mutating func refuse(
        _ handle: Handle, _ publish: IncomingPublish, _ code: ReasonCode, _ reason: CloseReason
    ) {
        guard publish.is5 else { return end(handle, reason) }
        switch publish.delivery {
        case .atMostOnce: if reason != .publishDenied { end(handle, reason) }
        case .atLeastOnce(let identifier, _):
            acknowledge(
                handle, .puback, identifier, code, needsCommit: false,
                requestBytes: publish.packetBytes)
        case .exactlyOnce(let identifier, _):
            let session = connections[handle].session
            // What was taken over before is answered as before [MQTT-4.3.3-10].
            let isKnown = sessions[session].inbound.contains(identifier)
            acknowledge(
                handle, .pubrec, identifier, isKnown ? .success : code, needsCommit: false,
                requestBytes: publish.packetBytes)
        }
    }

    /// True when a client may publish a message. Otherwise it is refused; a client of 3.1.1 is closed
    /// [MQTT-3.3.5-2].
    @inline(__always)
    private mutating func mayPublish(_ handle: Handle, _ publish: IncomingPublish) -> Bool {
        guard publish.is5 else { return mayPublish(handle, publish.topic) }
        return mayPublish5(handle, publish)
    }

    @inline(never)
    private mutating func mayPublish5(_ handle: Handle, _ publish: IncomingPublish) -> Bool {
        guard mayPublish(handle, publish.topic) else {
            refuse(handle, publish, .notAuthorized, .publishDenied)
            return false
        }
        if let forwarded = publish.forwarded, forwarded.count > Message.mostProperties {
            refuse(handle, publish, .quotaExceeded, .publishDenied)
            return false
        }
        return true
    }

    /// Handles PUBREL, which frees the identifier.
    mutating func receivePubrel(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle].session
        let isKnown = sessions[session].inbound.remove(identifier, pool: pool)
        let needsCommit = isKnown && sessions[session].isPersistent
        if needsCommit {
            commits.records.inboundRemoved(
                session: sessions[session].number, packetIdentifier: identifier.rawValue)
        }
        // Also for an unknown identifier: the former PUBCOMP may have been lost [MQTT-4.3.3-2].
        acknowledge(
            handle, .pubcomp, identifier, isKnown ? .success : .packetIdentifierNotFound,
            needsCommit: needsCommit, requestBytes: 0)
    }
}
