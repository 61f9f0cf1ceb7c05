import MQTTCodec
import MQTTCore
import Store
import Structures

/// Restores the store's content before the first connection is accepted.
extension Shard {
    public mutating func visit(lastSession: UInt64, lastMessage: UInt64) {
        sessions.restore(lastNumber: lastSession)
        commits.restore(lastMessage: lastMessage)
    }

    public mutating func visit(_ stored: StoredSession) -> Bool {
        guard !stored.hasEnded else {
            endedSessions.add(EndedSession(stored))
            restoration.addEnded(stored.number)
            return true
        }
        // A client has one session; the first one stays.
        guard sessions.find(stored.clientID) == nil else { return false }
        let session = sessions.add(
            stored.clientID,
            stored.userName.map { SessionUser(stored: $0, verifiesPasswords: verifiesPasswords) },
            isPersistent: true, number: stored.number, accessGeneration: 0, pool: pool)
        restoration.add(stored.number, session)
        // Positions that were assigned but never stored are possible here.
        let queue = OutboundQueue(
            horizon: stored.horizon, end: max(stored.end, stored.horizon),
            messages: UInt32(clamping: stored.waitingMessages), bytes: stored.waitingBytes)
        sessions.totals.replace(OutboundQueue(), by: queue)
        // A client that was connected when the broker ended counts as offline from now on.
        let sinceMs = stored.isAttached ? context.wallClockMs : stored.detachedSinceMs
        sessions[session].restore(
            sinceMs: sinceMs, holdsShared: stored.holdsShared, queue: queue)
        if stored.isAttached { commits.records.detached(stored.number, sinceMs: sinceMs) }
        let age = UInt64(max(0, context.wallClockMs - sinceMs))
        let expiry = context.limits.sessionExpiry.wholeMilliseconds
        sessions.scheduleExpiry(
            session,
            at: context.now.advanced(byMilliseconds: expiry > age ? expiry - age : 0))
        return true
    }

    public mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of number: UInt64, qos: UInt8
    ) -> Bool {
        guard let session = restoration.find(number), let qos = QoS(rawValue: qos),
            TopicText.isFilter(filter)
        else { return false }
        let plain =
            SharedSubscriptions.isShared(filter)
            ? SharedSubscriptions.filter(in: filter) : filter
        guard let plain else { return false }
        prepareSystemTopics(for: plain)
        let bytesBefore = sessions[session].subscriptions.byteCount
        _ = subscriptions.add(
            session, &sessions[session].subscriptions, filter: filter, qos: qos, isOnline: false)
        sessions.countSubscriptions(of: session, before: bytesBefore)
        return true
    }

    public mutating func visit(packetIdentifier: UInt16, of number: UInt64) -> Bool {
        guard let session = restoration.find(number),
            let identifier = PacketIdentifier(packetIdentifier)
        else { return false }
        sessions.countIdentifiers(of: session, areKept: false)
        sessions[session].inbound.insert(identifier, pool: pool)
        sessions.countIdentifiers(of: session, areKept: true)
        return true
    }

    public mutating func visit(
        position: UInt64, of number: UInt64, bytes: Int, expiresAtMs: Int64
    ) {
        if let session = restoration.find(number) {
            noteExpiry(atMs: expiresAtMs, session, position, bytes: bytes)
        }
    }

    public mutating func visit(retained stored: StoredMessage) -> Bool {
        guard let message = message(stored) else { return false }
        if message.isExpired(atMs: context.wallClockMs) {
            commits.records.retainedRemoved(topic: message.topic)
        } else {
            keepRetained(message)
        }
        message.release(in: pool)
        return true
    }

    public mutating func visit(will stored: StoredMessage, of session: UInt64) -> Bool {
        guard let message = message(stored) else { return false }
        restoration.wills.append((session, message))
        return true
    }

    private func message(_ stored: StoredMessage) -> Message? {
        guard let published = StoredQoS(byte: stored.qos), TopicText.isName(stored.topic) else {
            return nil
        }
        return Message(
            topic: stored.topic, payload: stored.payload, qos: published.qos,
            retain: stored.retain, wake: published.wake.rawValue,
            expiresAtMs: stored.expiresAtMs, messageID: stored.messageID, pool: pool)
    }

    /// Publishes the wills of clients that were connected when the broker ended [MQTT-3.1.2-8].
    public mutating func finishRestoring() {
        for (number, will) in restoration.wills {
            // In one group with its publication, so that the will is published once.
            commits.records.willRemoved(session: number)
            if SystemTopic.isClosedToClients(will.topic) {
                context.counters.dropped.add(.reservedTopic)
            } else if mayPublishRestored(will, of: restoration.find(number)) {
                let client = restoration.find(number).map { sessions.identifier(of: $0) }
                publishWill(will, of: client)
            }
            will.release(in: pool)
        }
        followers.finishRestoring(&self)
        restoration = Restoration()
    }

    /// True when the rules allow a will of an earlier run. For a clean session the user is unknown
    /// by now, so rules deny its will.
    private mutating func mayPublishRestored(_ will: Message, of session: UInt32?) -> Bool {
        if let session { return mayPublishWill(will, of: session) }
        guard rights.areRestricted else { return true }
        context.counters.accessRefusals.add(.will)
        context.notices.appendBounded(
            .access(
                AccessReport(
                    event: .will, clientID: [], topic: [UInt8](will.topic), line: 0)))
        return false
    }
}
