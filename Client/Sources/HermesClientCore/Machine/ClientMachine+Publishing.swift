import MQTTCodec

/// A message that the client does not take.
package enum PublishError: Error, Hashable, Sendable {
    /// Nothing is stored for QoS 0, and there is no connection.
    case notConnected
    /// The topic name is no topic name.
    case topic(MalformedPacket)
    /// The packet would be larger than ``ClientLimits/packetBytes``.
    case tooLarge(bytes: Int, limit: Int)
    /// ``ClientLimits/outboxMessages`` or ``ClientLimits/outboxBytes`` is reached.
    case outboxFull
}

extension ClientMachine {
    /// Publishes a message. With QoS 1 and 2 it is stored, and ``ClientAction/published(_:)`` tells
    /// its key when the broker has taken it over; returns that key, or `nil` for QoS 0.
    ///
    /// Without `sendsNow` the message leaves with ``sendPending(at:)``: the driver knows by then
    /// whether it is stored, and otherwise takes it back by ``withdraw(_:)``.
    package mutating func publish(
        topic: [UInt8], payload: [UInt8], qos: QoS, retain: Bool = false, sendsNow: Bool = true,
        at moment: Moment
    ) throws(PublishError) -> UInt64? {
        try check(topic: topic, payload: payload, qos: qos)
        let now = moment.monotonicMilliseconds
        guard qos != .atMostOnce else {
            guard case .connected = phase else { throw .notConnected }
            link?.messageAt = now
            send(Self.encodePublish(topic, payload, qos, retain, nil, isDuplicate: false), at: now)
            return nil
        }
        guard stored.outbox.count < settings.limits.outboxMessages,
            stored.outbox.bytes + topic.count + payload.count <= settings.limits.outboxBytes
        else { throw .outboxFull }
        let key = nextKey
        nextKey += 1
        record(
            .queued(
                OutgoingMessage(
                    key: key, identifier: freeIdentifier(), topic: topic, payload: payload,
                    qos: qos, retain: retain)))
        // It would overtake those that are held back.
        if !stored.outbox.held(withTopic: topic).isEmpty { record(.heldBack(key)) }
        if sendsNow { sendOutgoing(at: now) }
        return key
    }

    /// Sends what calls have stored.
    package mutating func sendPending(at moment: Moment) {
        sendOutgoing(at: moment.monotonicMilliseconds)
    }

    /// Takes back a message that could not be stored and was not sent.
    /// False if something else has sent it meanwhile: then it is kept.
    package mutating func withdraw(_ key: UInt64) -> Bool {
        let isSent = stored.outbox.messages.prefix(link?.sent ?? 0).contains { $0.key == key }
        if !isSent { stored.apply(.discarded(key)) }
        return !isSent
    }

    private func check(topic: [UInt8], payload: [UInt8], qos: QoS) throws(PublishError) {
        // The length of a topic name has two bytes.
        guard topic.count <= Int(UInt16.max) else { throw .topic(.truncated) }
        do throws(MalformedPacket) {
            try topic.read { bytes throws(MalformedPacket) in
                try TextValidation.checkTopicName(bytes, topic.whole)
            }
        } catch {
            throw .topic(error)
        }
        let limit = min(settings.limits.packetBytes, RemainingLength.maximumValue)
        guard payload.count <= limit else { throw .tooLarge(bytes: payload.count, limit: limit) }
        let size = PublishEncoder.size(
            topicCount: topic.count, payloadCount: payload.count, qos: qos)
        guard size <= limit else { throw .tooLarge(bytes: size, limit: limit) }
    }

    /// A packet identifier that nothing uses: the outbox is far smaller than their number.
    mutating func freeIdentifier() -> PacketIdentifier {
        while true {
            lastIdentifier &+= 1
            guard let identifier = PacketIdentifier(lastIdentifier),
                !stored.outbox.contains(identifier), link?.request?.identifier != identifier,
                link?.report != .sent(identifier), link?.discarded.contains(identifier) != true
            else { continue }
            return identifier
        }
    }

    /// Sends what the in-flight window has room for: subscriptions first, so that the answers to
    /// what the app publishes find them.
    mutating func sendOutgoing(at now: Int64) {
        guard case .connected = phase else { return }
        sendSubscriptions(at: now)
        while let sent = link?.sent, sent < settings.limits.inFlight,
            sent < stored.outbox.messages.count
        {
            let message = stored.outbox.messages[sent]
            if message.isReleased {
                send(.pubrel, message.identifier, at: now)
            } else {
                guard maySend(.message(message.key)) else { return }
                link?.publishedAt = now
                // DUP tells of a second attempt [MQTT-3.3.1-1].
                let bytes = Self.encodePublish(
                    message.topic, message.payload, message.qos, message.retain,
                    message.identifier, isDuplicate: attempted.contains(message.key))
                send(bytes, at: now)
            }
            link?.sent = sent + 1
            attempted.insert(message.key)
        }
        askForReport()
    }

    static func encodePublish(
        _ topic: [UInt8], _ payload: [UInt8], _ qos: QoS, _ retain: Bool,
        _ identifier: PacketIdentifier?, isDuplicate: Bool
    ) -> [UInt8] {
        let headerSize = PublishEncoder.headerSize(
            topicCount: topic.count, payloadCount: payload.count, qos: qos)
        let header = [UInt8](unsafeUninitializedCapacity: headerSize) { buffer, count in
            guard let base = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
            topic.withUnsafeBytes {
                PublishEncoder.writeHeader(
                    to: base, topic: $0, payloadCount: payload.count, qos: qos, retain: retain,
                    isDuplicate: isDuplicate, packetIdentifier: identifier?.rawValue ?? 0)
            }
            count = headerSize
        }
        return header + payload
    }

    // MARK: Acknowledgements

    mutating func receivePuback(_ identifier: PacketIdentifier, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if case .sent(identifier)? = link?.report {
            link?.report = .none
            isReportDue = false
            if stored.reportRefusedAt != nil { record(.reportRefused(at: nil)) }
            refusals.settled(.report)
            sendOutgoing(at: now)
            return
        }
        if link?.discarded.remove(identifier) != nil { return }
        guard let index = sentIndex(identifier, qos: .atLeastOnce) else {
            drop(.violation(.unexpectedAcknowledgement(.puback, identifier)), at: moment)
            return
        }
        brokerTook(stored.outbox.messages[index])
        finish(index, at: now)
    }

    mutating func receivePubrec(_ identifier: PacketIdentifier, at moment: Moment) {
        guard let index = sentIndex(identifier, qos: .exactlyOnce) else {
            drop(.violation(.unexpectedAcknowledgement(.pubrec, identifier)), at: moment)
            return
        }
        let message = stored.outbox.messages[index]
        // From here on the message is the broker's, and a PUBLISH of it would be a second message.
        if !message.isReleased {
            record(.released(message.key))
            brokerTook(message)
        }
        send(.pubrel, identifier, at: moment.monotonicMilliseconds)
        sendOutgoing(at: moment.monotonicMilliseconds)
    }

    mutating func receivePubcomp(_ identifier: PacketIdentifier, at moment: Moment) {
        guard let index = sentIndex(identifier, qos: .exactlyOnce),
            stored.outbox.messages[index].isReleased
        else {
            drop(.violation(.unexpectedAcknowledgement(.pubcomp, identifier)), at: moment)
            return
        }
        finish(index, at: moment.monotonicMilliseconds)
    }

    /// The message with this identifier among those that were sent on this connection.
    private func sentIndex(_ identifier: PacketIdentifier, qos: QoS) -> Int? {
        stored.outbox.messages.prefix(link?.sent ?? 0).firstIndex {
            $0.identifier == identifier && $0.qos == qos
        }
    }

    /// The broker has taken over the message at `index`, which was sent.
    private mutating func finish(_ index: Int, at now: Int64) {
        let key = stored.outbox.messages[index].key
        record(.finished(key))
        link?.sent -= 1
        attempted.remove(key)
        perform(.published(key))
        sendOutgoing(at: now)
    }
}
