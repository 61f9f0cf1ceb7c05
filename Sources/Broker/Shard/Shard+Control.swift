import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    // MARK: Publishing

    /// Publishes for the admin plane; `reply` is called once the message is stored.
    package mutating func publish(
        _ publication: Publication, reply: @escaping Reply<PublishCounts>
    ) {
        counters.publishReceived(
            publication.qos, payloadBytes: publication.payload.count)
        let mustStore =
            publication.sequence != nil
            || publication.topic.withUnsafeBytes {
                needsStore(
                    topic: $0, qos: publication.qos, retain: publication.retain,
                    holdsIdentifier: false)
            }
        guard !holdsForStore || !mustStore else {
            reply(.failure(.storeRefuses))
            return
        }
        var suffix: [UInt8] = []
        var sequence: UInt64?
        if let stamp = publication.sequence {
            let number = (sequences[stamp.channel] ?? 0) + 1
            sequences[stamp.channel] = number
            sequence = number
            suffix = Self.varintField(stamp.tag, number)
            stamp.channel.withUnsafeBytes { writes.sequence(channel: $0, number: number) }
        }
        let message = publication.topic.withUnsafeBytes { topic in
            publication.payload.withUnsafeBytes { payload in
                suffix.withUnsafeBytes { suffix in
                    Message(
                        topic: topic, payload: payload, suffix: suffix, qos: publication.qos,
                        retain: publication.retain, expiresAtMs: publication.expiresAtMs ?? 0,
                        pool: pool)
                }
            }
        }
        defer { message.release(in: pool) }
        var (counts, needsCommit) = route(message, mustCommit: sequence != nil)
        counts.sequence = sequence
        guard needsCommit else {
            reply(.success(counts))
            return
        }
        replyNumber += 1
        pendingReplies[replyNumber] = PendingReply(counts: counts, reply: reply)
        commit(.reply(replyNumber))
    }

    /// A protobuf varint field: its tag byte, then seven bits a byte, least significant first.
    private static func varintField(_ tag: UInt8, _ number: UInt64) -> [UInt8] {
        var bytes = [tag]
        var rest = number
        while rest >= 128 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
        return bytes
    }

    /// The shard stops: whoever waits for a commit learns that it will not come.
    package mutating func abandonReplies() {
        for pending in pendingReplies.values { pending.reply(.failure(.stopping)) }
        pendingReplies.removeAll()
        for question in queueQuestions.values { question.reply(.failure(.stopping)) }
        queueQuestions.removeAll()
        for listing in listings { listing.reply(.failure(.stopping)) }
        listings.removeAll()
    }

    // MARK: Questions

    /// Figures for `GET /v1/status`; the loop adds what only it knows.
    package func status(
        version: String, startedAtMs: Int64, durability: String, durabilityIntervalMs: Int? = nil,
        listeners: [String], bytesReceived: UInt64, bytesSent: UInt64
    ) -> BrokerStatus {
        BrokerStatus(
            version: version, startedAtMs: startedAtMs,
            uptimeSeconds: max(0, wallClockMs - startedAtMs) / 1_000, durability: durability,
            durabilityIntervalMs: durabilityIntervalMs, listeners: listeners,
            connections: activeConnections,
            connectionsPending: pendingConnections, connectionsTotal: counters.connectionsOpened,
            connectionsRefused: counters.connectionsRefused, sessions: sessions.count,
            persistentSessions: persistentSessions, subscriptions: trie.count + shared.count,
            retained: retainedCount, queued: totals.waiting, queuedBytes: totals.waitingBytes,
            inFlight: totals.inFlight, publishesReceived: counters.publishesReceived,
            publishesSent: counters.publishesSent, bytesReceived: bytesReceived,
            bytesSent: bytesSent, dropped: Self.dictionary(counters.dropped.figures),
            protocolViolations: counters.protocolViolations,
            limitsReached: Self.dictionary(counters.limits.figures),
            publishersPaused: counters.publishersPaused)
    }

    package func client(_ clientID: String, address: (Handle) -> String) -> ClientDetail? {
        guard let index = findSession(clientID) else { return nil }
        let session = sessions[index]
        let connection = session.connection.map { connections[$0.index] }
        let subscriptions =
            (trie.subscriptions(of: session.subscriptions)
            + shared.subscriptions(of: session.shared))
            .map { ClientSubscription(filter: Self.text($0.filter), qos: Int($0.qos.rawValue)) }
            .sorted { $0.filter < $1.filter }
        return ClientDetail(
            summary: summary(index, address), subscriptionList: subscriptions,
            willTopic: connection?.will.map { Self.text([UInt8]($0.topic)) },
            lastPacketMsAgo: connection.map { Int64(now.milliseconds(since: $0.lastPacket)) },
            inboundQoS2: Int(session.inbound.count),
            unacknowledgedPublishes: Int(connection?.acknowledgements.requests ?? 0),
            unsentBytes: connection?.output.count ?? 0,
            readingPaused: connection?.isPaused ?? false,
            publishesReceived: session.publishesReceived, publishesSent: session.publishesSent,
            publishesAcknowledged: session.publishesAcknowledged,
            dropped: Self.dictionary(drops(of: index).figures),
            lastDisconnectReason: session.lastCloseReason?.name,
            takeOvers: repeatedTakeOvers(index, address: address))
    }

    /// Closes a client's connection as a failure of the network would; false when it has none.
    package mutating func disconnect(_ clientID: String) -> Bool {
        guard let index = findSession(clientID), let connection = sessions[index].connection
        else { return false }
        doom(connection, .administrator)
        closeDoomed()
        return true
    }

    /// The session of a client identifier.
    func findSession(_ clientID: String) -> UInt32? {
        Array(clientID.utf8).withUnsafeBytes { findSession($0) }
    }

    func summary(_ index: UInt32, _ address: (Handle) -> String) -> ClientSummary {
        let session = sessions[index]
        return ClientSummary(
            clientID: Self.text(session.clientIdentifier.array),
            userName: session.hasUserName ? Self.text(session.userName.array) : nil,
            connected: session.connection != nil, address: session.connection.map(address),
            protocolVersion: session.version == .v3_1 ? "3.1" : "3.1.1",
            cleanSession: !session.isPersistent, keepAliveSeconds: Int(session.keepAlive),
            sinceMs: session.sinceMs,
            subscriptions: Int(session.subscriptions.count + session.shared.count),
            inFlight: Int(session.outbound.inFlight), queued: Int(session.outbound.waiting),
            queuedBytes: session.outbound.waitingBytes)
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func dictionary(_ counts: [BrokerFigures.Count]) -> [String: UInt64] {
        var result: [String: UInt64] = [:]
        for count in counts { result[count.label] = count.value }
        return result
    }
}
