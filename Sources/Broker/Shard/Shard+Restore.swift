import MQTTCodec
import MQTTCore
import Store
import Structures

/// What is needed only until the store is loaded.
struct Restoration {
    /// Sessions by their number in the store, which rises from one to the next.
    private var sessions: [(number: UInt64, index: UInt32)] = []
    /// Where the last one that was asked for stands: questions come in the same order.
    private var place = 0
    var wills: [(session: UInt64, message: Message)] = []

    mutating func add(_ number: UInt64, _ index: UInt32) { sessions.append((number, index)) }

    mutating func find(_ number: UInt64) -> UInt32? {
        if place >= sessions.count || sessions[place].number > number { place = 0 }
        if place < sessions.count, sessions[place].number < number {
            // The next one, or else by halves.
            place += 1
            if place < sessions.count, sessions[place].number < number {
                place = firstPlace(notBelow: number)
            }
        }
        guard place < sessions.count, sessions[place].number == number else { return nil }
        return sessions[place].index
    }

    private func firstPlace(notBelow number: UInt64) -> Int {
        var low = 0
        var high = sessions.count
        while low < high {
            let middle = (low + high) / 2
            if sessions[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Takes over what the store holds, before the first connection is accepted.
extension Shard: StoreVisitor {
    package mutating func visit(lastSession: UInt64, lastMessage: UInt64) {
        sessionNumber = lastSession
        messageNumber = lastMessage
    }

    package mutating func visit(_ stored: StoredSession) {
        guard !stored.hasEnded else {
            endedSessions.append(
                EndedSession(
                    number: stored.number, clientIdentifier: [UInt8](stored.clientIdentifier),
                    horizon: stored.horizon, below: stored.end))
            return
        }
        let index = addSession(
            stored.clientIdentifier,
            stored.userName.map { SessionUser(stored: $0, verifiesPasswords: verifiesPasswords) },
            isPersistent: true, number: stored.number)
        restoration.add(stored.number, index)
        // A position that was given and never stored must not stop the start.
        let end = max(stored.end, stored.horizon)
        let waiting = Int(clamping: end - stored.horizon)
        sessions[index].outbound = OutboundQueue(
            horizon: stored.horizon, end: end,
            inFlight: UInt32(clamping: max(0, stored.waitingMessages - waiting)),
            bytes: stored.waitingBytes)
        sessions[index].holdsShared = stored.holdsShared
        totals.waiting += Int(sessions[index].outbound.waiting)
        totals.waitingBytes += sessions[index].outbound.waitingBytes
        totals.inFlight += Int(sessions[index].outbound.inFlight)
        // Who was connected when the broker ended is away since now.
        let sinceMs = stored.isAttached ? wallClockMs : stored.detachedSinceMs
        sessions[index].sinceMs = sinceMs
        if stored.isAttached { writes.detached(stored.number, sinceMs: sinceMs) }
        let age = UInt64(max(0, wallClockMs - sinceMs))
        let expiry = settings.sessionExpiry.wholeMilliseconds
        sessions[index].expiryTimer = timers.schedule(
            TimerPayload.session(handle(ofSession: index)).encoded,
            at: now.advanced(byMilliseconds: expiry > age ? expiry - age : 0))
    }

    package mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, qos: UInt8
    ) {
        guard let index = restoration.find(session), let qos = QoS(rawValue: qos) else {
            return
        }
        let isShared = SharedSubscriptions.isShared(filter)
        guard !isShared || SharedSubscriptions.filter(in: filter) != nil else { return }
        prepareSystemTopics(for: filter)
        sessions[index].subscriptionWeight += Self.weight(of: filter)
        if isShared {
            _ = shared.subscribe(
                index, &sessions[index].shared, text: filter, qos: qos, isOnline: false)
        } else {
            _ = trie.subscribe(index, &sessions[index].subscriptions, filter: filter, qos: qos)
        }
    }

    package mutating func visit(packetIdentifier: UInt16, of session: UInt64) {
        guard let index = restoration.find(session),
            let identifier = PacketIdentifier(packetIdentifier)
        else { return }
        sessions[index].inbound.insert(identifier, pool: pool)
    }

    package mutating func visit(retained stored: StoredMessage) {
        guard let message = message(stored) else { return }
        retained.update(message)
        message.release(in: pool)
    }

    package mutating func visit(channel: UnsafeRawBufferPointer, number: UInt64) {
        sequences[[UInt8](channel)] = number
    }

    package mutating func visit(will stored: StoredMessage, of session: UInt64) {
        guard let message = message(stored) else { return }
        restoration.wills.append((session, message))
    }

    private func message(_ stored: StoredMessage) -> Message? {
        guard let qos = QoS(rawValue: stored.qos) else { return nil }
        return Message(
            topic: stored.topic, payload: stored.payload, qos: qos, retain: stored.retain,
            expiresAtMs: stored.expiresAtMs, pool: pool)
    }

    /// All is loaded: the wills of those who were connected when the broker ended without a word are
    /// published [MQTT-3.1.2-8].
    package mutating func finishRestoring() {
        for (number, will) in restoration.wills {
            // In one group with its publication, so that it is published once.
            writes.willRemoved(session: number)
            if SystemTopic.isClosedToClients(will.topic) {
                counters.dropped.add(.reservedTopic)
            } else if mayPublishRestored(will, of: restoration.find(number)) {
                publishWill(will)
            }
            will.release(in: pool)
        }
        restoration = Restoration()
    }
}
