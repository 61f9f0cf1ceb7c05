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
        subscription filter: UnsafeRawBufferPointer, of number: UInt64, grant: UInt32
    ) -> Bool {
        guard let session = restoration.find(number),
            let grant = SubscriptionGrant(rawValue: grant),
            TopicText.isFilter(filter)
        else { return false }
        let plain =
            SharedSubscriptions.isShared(filter)
            ? SharedSubscriptions.filter(in: filter) : filter
        guard let plain else { return false }
        prepareSystemTopics(for: plain)
        let bytesBefore = sessions[session].subscriptions.byteCount
        _ = subscriptions.add(
            session, &sessions[session].subscriptions, filter: filter, grant: grant,
            isOnline: false)
        sessions[session].note(grant)
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
        let content = StoredContent(stored.payload, published)
        return Message(
            topic: stored.topic, payload: content.payload, qos: published.qos,
            retain: stored.retain, wake: published.wake.rawValue,
            expiresAtMs: stored.expiresAtMs, messageID: stored.messageID,
            forwarded: content.forwarded, forwardedSource: content.properties, pool: pool)
    }

    /// Takes back what a session of a client of MQTT 5.0 has beyond others. Comes after all sessions.
    package mutating func restore(terms fact: StoredFact) throws(DamagedFact) {
        let (number, stored) = try SessionTerms.read(fact)
        guard let session = restoration.find(number) else {
            // A session that ended with its connection has left the times of its will.
            restoration.terms[number] = stored
            commits.records.termsRemoved(of: number, fact.owner)
            return
        }
        terms[session] = stored
        let age = UInt64(max(0, context.wallClockMs - sessions[session].sinceMs))
        let expiry = expiryMilliseconds(of: session)
        sessions.cancelExpiry(session)
        sessions.scheduleExpiry(
            session,
            at: context.now.advanced(byMilliseconds: expiry > age ? expiry - age : 0))
    }

    /// Has the will of a session wait further, whose client was offline or connected when the broker
    /// ended; false when it is to be published.
    private mutating func goOnDelaying(_ will: Message, of session: UInt32) -> Bool {
        guard delaysWill(of: session), let terms = terms[session] else { return false }
        let age = UInt64(max(0, context.wallClockMs - sessions[session].sinceMs))
        let delay = UInt64(terms.will.delay) * 1_000
        guard delay > age else { return false }
        will.retainReference()
        sessions.count(session, SessionBytes.of(will: will))
        delayedWills.add(
            will, of: session, expiry: terms.will.expiry,
            at: context.now.advanced(byMilliseconds: delay - age))
        return true
    }

    /// Publishes the wills of clients that were connected when the broker ended [MQTT-3.1.2-8].
    public mutating func finishRestoring() {
        for (number, will) in restoration.wills {
            let session = restoration.find(number)
            if let session, goOnDelaying(will, of: session) {
                will.release(in: pool)
                continue
            }
            // In one group with its publication, so that the will is published once.
            commits.records.willRemoved(session: number)
            if SystemTopic.isClosedToClients(will.topic) {
                context.counters.dropped.add(.reservedTopic)
            } else if mayPublishRestored(will, of: session) {
                let client = session.map { sessions.identifier(of: $0) }
                let times = session.map { terms[$0]?.will } ?? restoration.terms[number]?.will
                publishWill(will, of: client, expiry: times?.expiry)
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
