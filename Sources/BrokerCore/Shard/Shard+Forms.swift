import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The form in which each receiver gets a message: that of its version, and of its subscriptions with
/// options of MQTT 5.0.
extension Shard {
    // MARK: Subscriptions with options

    /// The session of a publisher, if its subscriptions to the topic are all without its own messages
    /// [MQTT-3.8.3-3]; else ``noIndex``.
    @inline(__always)
    mutating func ownSession(
        of publisher: Handle, _ topic: UnsafeRawBufferPointer
    ) -> UInt32 {
        let session = connections[publisher].session
        guard sessions[session].hasNoLocal else { return noIndex }
        return takesLocal(session, topic) ? noIndex : session
    }

    /// The same for the will of a session, whose client is gone.
    mutating func ownSession(ofWill will: Message, _ session: UInt32?) -> UInt32 {
        guard let session, sessions[session].isUsed, sessions[session].hasNoLocal else {
            return noIndex
        }
        return takesLocal(session, will.topic) ? noIndex : session
    }

    @inline(never)
    mutating func takesLocal(_ session: UInt32, _ topic: UnsafeRawBufferPointer) -> Bool {
        subscriptions.grants(
            of: session, sessions[session].subscriptions, topic, group: noIndex
        ).grants.takesLocal
    }

    /// True if a session gets a message that was published with RETAIN as such, although it had the
    /// subscription before [MQTT-3.3.1-12] [MQTT-3.3.1-13].
    mutating func keepsRetain(
        _ session: UInt32, _ topic: UnsafeRawBufferPointer, group: UInt32
    ) -> Bool {
        guard sessions[session].hasOptions else { return false }
        if let target = sessions[session].connection, !connections[target].outlet.speaks5 {
            return false
        }
        return subscriptions.grants(
            of: session, sessions[session].subscriptions, topic, group: group
        ).grants.retainAsPublished
    }

    // MARK: Flow control

    /// Messages that may be in flight to a connection's client [MQTT-3.3.4-9].
    @inline(__always)
    func window(of target: Handle) -> UInt32 {
        guard connections[target].outlet.speaks5 else { return context.limits.maxInFlight }
        return min(context.limits.maxInFlight, UInt32(clients5[target].receiveMaximum))
    }

    // MARK: PUBLISH

    /// Appends a message to the output of a session's client; `identifier` counts above QoS 0. False when the
    /// packet is larger than the client takes [MQTT-3.1.2-24].
    @inline(__always)
    mutating func append(
        _ message: Message, qos: QoS, retain: Bool, isDuplicate: Bool, identifier: UInt16,
        group: UInt32, of session: UInt32, to target: Handle
    ) -> Bool {
        guard connections[target].outlet.speaks5 else {
            connections[target].outlet.append(
                message, qos: qos, retain: retain, isDuplicate: isDuplicate,
                identifier: identifier, pool: context.pool)
            return true
        }
        return append5(
            message, qos: qos, retain: retain, isDuplicate: isDuplicate, identifier: identifier,
            group: group, of: session, to: target)
    }

    @inline(never)
    private mutating func append5(
        _ message: Message, qos: QoS, retain: Bool, isDuplicate: Bool, identifier: UInt16,
        group: UInt32, of session: UInt32, to target: Handle
    ) -> Bool {
        let hop = hop(
            message.topic, expiresAtMs: message.expiresAtMs, group: group, of: session)
        guard let layout = message.layout5(qos: qos, hop: hop),
            layout.count <= clients5[target].maximumPacketSize
        else { return false }
        let pool = context.pool
        connections[target].outlet.withOutput {
            message.append(
                to: &$0, layout, qos: qos, retain: retain, isDuplicate: isDuplicate,
                packetIdentifier: identifier, hop: hop, pool: pool)
        }
        return true
    }

    /// True if a message fits into what the client takes; always of a client of an earlier version.
    mutating func fits(
        _ message: Message, qos: QoS, group: UInt32, of session: UInt32, to target: Handle
    ) -> Bool {
        guard connections[target].outlet.speaks5 else { return true }
        let hop = hop(
            message.topic, expiresAtMs: message.expiresAtMs, group: group, of: session)
        guard let layout = message.layout5(qos: qos, hop: hop) else { return false }
        return layout.count <= clients5[target].maximumPacketSize
    }

    /// Copies a packet of QoS 0 where publisher or receiver speaks MQTT 5.0; false when it is larger than
    /// the client takes, which counts as lost.
    @inline(never)
    mutating func deliverRaw5(
        _ raw: RawPublish, group: UInt32, of session: UInt32, to target: Handle
    ) -> Bool {
        if !connections[target].outlet.speaks5 {
            appendRaw3(raw, to: target)
        } else if raw.is5, !sessions[session].hasOptions,
            raw.size <= clients5[target].maximumPacketSize
        {
            connections[target].outlet.append(
                packet: raw.packet, count: raw.size, pool: context.pool)
        } else {
            guard appendRaw5(raw, group: group, of: session, to: target) else {
                drop(session, .tooLarge)
                return false
            }
        }
        sessions[session].publishesSent += 1
        connections.markDirty(target)
        return true
    }

    /// Appends the message of a packet with a header of its own; false when it is too large.
    private mutating func appendRaw5(
        _ raw: RawPublish, group: UInt32, of session: UInt32, to target: Handle
    ) -> Bool {
        let (topic, payload) = (raw.topic, raw.payload)
        let hop = hop(topic, expiresAtMs: 0, group: group, of: session)
        guard
            let layout = PublishLayout5(
                topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce, hop: hop),
            layout.count <= clients5[target].maximumPacketSize
        else { return false }
        let pool = context.pool
        connections[target].outlet.withOutput { output in
            let destination = output.append(layout.count, pool: pool)
            PublishEncoder5.writeHeader(
                layout, to: destination, topic: topic, qos: .atMostOnce, retain: false,
                isDuplicate: false, packetIdentifier: 0, hop: hop, forwarded: nil,
                forwardedSource: UnsafeRawBufferPointer(start: nil, count: 0))
            if let base = payload.baseAddress {
                (destination + layout.headerCount).copyMemory(
                    from: base, byteCount: payload.count)
            }
        }
        return true
    }

    /// Appends a publisher's packet of 5.0 in the form of 3.1.1.
    private mutating func appendRaw3(_ raw: RawPublish, to target: Handle) {
        let (topic, payload) = (raw.topic, raw.payload)
        let header = PublishEncoder.headerSize(
            topicCount: topic.count, payloadCount: payload.count, qos: .atMostOnce)
        let pool = context.pool
        connections[target].outlet.withOutput { output in
            let destination = output.append(header + payload.count, pool: pool)
            PublishEncoder.writeHeader(
                to: destination, topic: topic, payloadCount: payload.count, qos: .atMostOnce,
                retain: false, isDuplicate: false, packetIdentifier: 0)
            if let base = payload.baseAddress {
                (destination + header).copyMemory(from: base, byteCount: payload.count)
            }
        }
    }

    /// What belongs to this hop: the seconds that are left, and the identifiers of the receiver's
    /// subscriptions [MQTT-3.3.4-3] [MQTT-3.3.4-4]. Valid until the next call.
    @inline(__always)
    private mutating func hop(
        _ topic: UnsafeRawBufferPointer, expiresAtMs: Int64, group: UInt32, of session: UInt32
    ) -> PublishHop {
        var hop = PublishHop()
        if expiresAtMs != 0 {
            // At least 1, so that what is sent still expires [MQTT-3.3.2-6].
            let left = max(1, (expiresAtMs - context.wallClockMs + 999) / 1_000)
            hop.messageExpiryInterval = UInt32(clamping: left)
        }
        if sessions[session].hasOptions {
            hop.subscriptionIdentifiers =
                subscriptions.grants(
                    of: session, sessions[session].subscriptions, topic, group: group
                ).identifiers
        }
        return hop
    }
}
