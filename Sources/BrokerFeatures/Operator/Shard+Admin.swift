import Authorization
import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// The commands of the admin plane.
extension Shard {
    /// Messages dropped per turn, so that a long queue delays nobody.
    private static var dropsPerTurn: Int { 10_000 }

    /// Answers all waiting requests with an error, because the shard stops.
    public mutating func abandonReplies() {
        features.requests.abandonAll(pool: pool)
        features.groups.abandonAll()
        features.pushes.abandonAll()
        bans.abandonAll()
        userDisconnects.abandonAll()
        features.receipts.events.answer(.failure(.stopping))
        for reply in features.trials.values { reply(.failure(.stopping)) }
        features.trials = [:]
    }

    // MARK: Queues

    /// A page of a client's queue; its limit is at least 1. Messages in memory are as of now, those
    /// from the store as of this turn's records.
    public mutating func queue(_ query: QueueQuery, reply: @escaping Reply<QueuePage?>) {
        guard let session = find(query.clientID) else {
            reply(.success(nil))
            return
        }
        let queue = sessions[session].outbound
        var page = QueuePage(clientID: query.clientID, messages: [])
        var next: UInt64?
        queue.forEachListed(from: query.from) { listed in
            guard page.messages.count < query.limit else {
                next = listed.position
                return false
            }
            page.messages.append(QueuedMessage(listed))
            return true
        }
        let from = max(query.from, queue.firstUnloaded)
        if next == nil, queue.isStoring, from < queue.end {
            guard page.messages.count == query.limit else {
                let read = features.requests.ask(
                    page, of: sessions[session], from: from, limit: query.limit, reply)
                commits.read(read)
                return
            }
            next = from
        }
        page.next = next.map { "\($0)" }
        reply(.success(page))
    }

    /// Drops a client's waiting messages, oldest first, and answers when that is stored. Messages
    /// in flight stay. `bound` is `nil` in the first call, then that of the previous answer.
    public mutating func dropQueue(
        of clientID: String, below bound: UInt64?, reply: @escaping Reply<QueueDrop?>
    ) {
        guard let session = find(clientID) else {
            reply(.success(nil))
            return
        }
        let before = sessions[session].outbound
        let number = sessions[session].number
        let bound = bound ?? before.end
        var (count, positions) = (0, 0)
        while positions < Self.dropsPerTurn {
            passHoles(session)
            let (firstStored, waiting) = (
                sessions[session].outbound.firstStored, sessions[session].outbound.waiting
            )
            guard
                let position = sessions[session].outbound.dropOldest(
                    below: bound, pool: context.pool)
            else { break }
            forgetHoles(session, from: firstStored)
            if position == firstStored { sessions.loads.noteDropped(position, of: number) }
            finished(session, position, .dropped(.byOperator))
            positions += 1
            // Else the position was a hole.
            guard sessions[session].outbound.waiting < waiting else { continue }
            drop(session, .byOperator)
            count += 1
        }
        let after = sessions[session].outbound
        sessions.totals.replace(before, by: after)
        let answer = QueueDrop(
            dropped: count, bound: bound, hasMore: positions == Self.dropsPerTurn)
        guard positions > 0, sessions[session].isPersistent else {
            reply(.success(answer))
            return
        }
        if after.firstStored != before.firstStored {
            commits.records.horizon(
                session: number, position: max(after.firstStored, sessions.loads.below(of: number)))
        }
        commit(answer, reply)
    }

    // MARK: Clients

    /// The session of a client identifier.
    func find(_ clientID: String) -> UInt32? {
        Array(clientID.utf8).withUnsafeBytes { sessions.find($0) }
    }

    /// The connection of a client; `nil` while it is offline.
    public func connection(of clientID: String) -> Handle? {
        find(clientID).flatMap { sessions[$0].connection }
    }

    /// Closes a connection without DISCONNECT, so its will is published; false when offline.
    public mutating func disconnect(_ clientID: String) -> Bool {
        guard let session = find(clientID), let connection = sessions[session].connection else {
            return false
        }
        end(connection, .administrator)
        closeEnding()
        return true
    }

    /// Ends a session, with its connection as a network failure would, and answers once that is
    /// stored: false without one.
    public mutating func endSession(of clientID: String, reply: @escaping Reply<Bool>) {
        guard find(clientID) != nil else {
            reply(.success(false))
            return
        }
        // A removal gives room back, so it does not wait for room.
        guard !commits.isBacklogFull else {
            reply(.failure(.storeRefuses))
            return
        }
        _ = disconnect(clientID)
        // A clean session has ended with its connection [MQTT-3.1.2-6].
        if let session = find(clientID) { removeSession(session, because: .byOperator) }
        guard commits.records.hasUncommittedRecords else {
            reply(.success(true))
            return
        }
        commit(true, reply)
    }

    /// Whether a client may get messages of a topic; `nil` without a session.
    public mutating func readRight(of clientID: String, topic: String) -> ReadRight? {
        guard let session = find(clientID) else { return nil }
        let verdict = Array(topic.utf8).withUnsafeBytes {
            rights.decide(.subscribe, $0, for: sessions[session])
        }
        chargeRights()
        guard let verdict else { return ReadRight(isAllowed: true, source: .nothing) }
        let isByLogin = verdict.line == AccessVerdict.loginLine
        return ReadRight(
            isAllowed: verdict.isAllowed, source: isByLogin ? .login : .rule(line: verdict.line))
    }

    /// The details of one client; `address` formats the peer of a connection.
    public func client(_ clientID: String, address: (Handle) -> String) -> ClientDetail? {
        guard let index = find(clientID) else { return nil }
        let session = sessions[index]
        let connection = session.connection.map { connections[$0] }
        let devices = devices(of: clientID)
        return ClientDetail(
            summary: summary(index, address), subscriptionList: firstSubscriptions(of: index),
            sessionBytes: sessionBytes(of: index),
            willTopic: connection?.will.map { Self.text([UInt8]($0.topic)) },
            lastPacketMsAgo: connection.map {
                Int64(now.milliseconds(since: $0.keepAlive.lastPacket))
            },
            inboundQoS2: Int(session.inbound.count),
            unacknowledgedPublishes: Int(connection?.intake.acknowledgements.requests ?? 0),
            unsentBytes: connection?.outlet.count ?? 0,
            readingPaused: connection?.intake.isPaused ?? false,
            publishesReceived: session.publishesReceived, publishesSent: session.publishesSent,
            publishesSentQoS0: session.publishesSent - session.publishesSentAboveQoS0,
            publishesAcknowledged: session.publishesAcknowledged,
            dropped: sessions.drops(of: index).figures.byLabel,
            lastDisconnectReason: session.lastCloseReason?.name,
            takeOvers: repeatedTakeOvers(index, address),
            heartbeatSeconds: connection.flatMap {
                $0.pingSilence == 0 ? nil : Int($0.pingSilence)
            },
            report: report(of: clientID),
            devices: devices.isEmpty ? nil : devices.map { DeviceModel($0) })
    }

    /// The first subscriptions of a session, at most ``ClientDetail/mostListed`` and so many bytes and
    /// one more, in the order of their filters' bytes.
    private func firstSubscriptions(of session: UInt32) -> [ClientSubscription] {
        var filters: [(filter: [UInt8], qos: QoS)] = []
        var bytes = 0
        _ = subscriptions.forEachFilter(of: sessions[session].subscriptions, from: 0) {
            filter, qos in
            guard filters.count < ClientDetail.mostListed, bytes < ClientDetail.mostListedBytes
            else { return false }
            bytes += filter.count
            filters.append((filter, qos))
            return true
        }
        // By bytes: a String takes the square of the marks that a client puts into its filters.
        return filters.sorted { $0.filter.lexicographicallyPrecedes($1.filter) }
            .map { ClientSubscription(filter: Self.text($0.filter), qos: Int($0.qos.rawValue)) }
    }

    func summary(_ index: UInt32, _ address: (Handle) -> String) -> ClientSummary {
        let session = sessions[index]
        return ClientSummary(
            clientID: Self.text(session.clientID.array),
            userName: session.hasUserName ? Self.text(session.userName.array) : nil,
            connected: session.connection != nil, address: session.connection.map(address),
            protocolVersion: session.versionText,
            cleanSession: !session.isPersistent, keepAliveSeconds: Int(session.keepAlive),
            sinceMs: session.sinceMs, subscriptions: session.subscriptions.count,
            inFlight: Int(session.outbound.inFlight), queued: Int(session.outbound.waiting),
            queuedBytes: session.outbound.waitingBytes, dropped: sessions.drops(of: index).total)
    }

    /// `nil` when no other peer takes the session over repeatedly.
    private func repeatedTakeOvers(
        _ session: UInt32, _ address: (Handle) -> String
    ) -> RepeatedTakeOvers? {
        guard let report = takeOvers.report(takeOverKey(session), now: now) else { return nil }
        let waiting = report.waiting.flatMap { handle in
            connections.isCurrent(handle) && connections[handle].machine.isDelayed
                ? address(handle) : nil
        }
        return RepeatedTakeOvers(
            count: report.takeOvers, delayMs: Int64(report.delayMilliseconds),
            peers: report.peers, waiting: waiting)
    }

    /// Sets the addresses of two peers that take over from each other.
    public mutating func nameTakeOver(_ report: TakeOverReport, peers: [String]) {
        takeOvers.name(report.clientID.withUnsafeBytes { hash($0) }, peers)
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

extension AskReadRight: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<ReadRight?>) {
        reply(.success(shard.readRight(of: clientID, topic: topic)))
    }
}
