import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// The shard's figures, and its topics below `$SYS/`.
extension Shard {
    // MARK: Figures

    /// Figures for metrics; the caller adds those of the process except memory.
    public var figures: BrokerFigures {
        var figures = BrokerFigures()
        figures.version = outside.version
        figures.durability = outside.durability
        figures.startedAtMs = system.startedAtMs
        figures.uptimeSeconds = now.milliseconds(since: system.startedAt) / 1_000
        figures.connections = connections.activeCount
        figures.connectionsPending = connections.pendingCount
        figures.connectionsPeak = counters.connectionsPeak
        figures.connectionsLimit = context.limits.mostConnections
        figures.listeners = counters.listeners
        figures.connectionsOpened = counters.connectionsOpened
        figures.connectionsAdmitted = counters.connectionsAdmitted
        figures.connectionsRefused = counters.connectionsRefused
        figures.connectionsClosed = counters.closed.figures
        figures.takeOversDelayed = counters.takeOversDelayed
        figures.protocolViolations = counters.protocolViolations
        figures.sessions = sessions.count
        figures.persistentSessions = sessions.persistentCount
        figures.sessionBytes = sessions.bytes.total
        let mostSessionBytes = context.limits.mostSessionBytes
        figures.sessionBytesLimit = mostSessionBytes == .max ? nil : mostSessionBytes
        figures.sessionsExpired = counters.sessionsExpired
        figures.subscriptions = subscriptions.plainCount
        figures.sharedSubscriptions = subscriptions.sharedCount
        figures.retained = retained.count
        figures.retainedBytes = retained.byteCount
        figures.retainedWalks = walks.count
        addTraffic(to: &figures)
        figures.publishersPaused = counters.publishersPaused
        figures.authenticationsWaiting = outside.authenticationsWaiting
        figures.commitsPending = commits.pendingCount
        figures.process.residentBytes = outside.residentBytes
        figures.process.peakResidentBytes = outside.peakResidentBytes
        followers.add(to: &figures, self)
        return figures
    }

    private func addTraffic(to figures: inout BrokerFigures) {
        figures.packetsReceived = counters.packetsReceived
        figures.packetsSent = counters.packetsSent
        figures.publishesReceived = counters.publishesReceivedByQoS
        figures.publishesSent = counters.publishesSentByQoS
        figures.publishBytesReceived = counters.publishBytesReceived
        figures.publishBytesSent = counters.publishBytesSent
        figures.bytesReceived = outside.bytesReceived
        figures.bytesSent = outside.bytesSent
        figures.dropped =
            counters.dropped.figures
            + [BrokerFigures.Count("session_ended", counters.lostWithSessions)]
        figures.queued = sessions.totals.waiting
        figures.queuedBytes = sessions.totals.waitingBytes
        figures.inFlight = sessions.totals.inFlight
        figures.deliveriesAtLeastOnce = counters.deliveriesAtLeastOnce
        figures.deliveriesExactlyOnce = counters.deliveriesExactlyOnce
        figures.acknowledgedDeliveriesAtLeastOnce = counters.acknowledgedDeliveriesAtLeastOnce
        figures.acknowledgedDeliveriesExactlyOnce = counters.acknowledgedDeliveriesExactlyOnce
        figures.acknowledgements = commits.times.histogram
        figures.limitsReached = counters.limits.figures
        figures.accessRefusals = counters.accessRefusals.figures
        figures.isDraining = isDraining
        figures.bans = bans.count
        figures.bansMet = counters.bansMet.figures
    }

    // MARK: Samples

    /// True when ``takeSample()`` is due.
    public var isSampleDue: Bool { system.isSampleDue(at: context.now) }

    /// Adds the counters to the load averages, before the turn changes them.
    public mutating func takeSample() {
        var sample = LoadAverages.Sample()
        for quantity in LoadAverages.Quantity.allCases { sample.append(count(of: quantity)) }
        system.add(sample, at: context.now)
    }

    private func count(of quantity: LoadAverages.Quantity) -> UInt64 {
        switch quantity {
        case .connections: counters.connectionsAdmitted
        case .sockets: counters.connectionsOpened
        case .packetsReceived: counters.packetsReceived
        case .packetsSent: counters.packetsSent
        case .publishesReceived: counters.publishesReceived
        case .publishesSent: counters.publishesSent
        case .publishesDropped: counters.dropped.total + counters.lostWithSessions
        case .bytesReceived: outside.bytesReceived
        case .bytesSent: outside.bytesSent
        }
    }

    // MARK: Topics below $SYS/

    /// Prepares for a new subscription; `filter` is the plain part of a shared one.
    package mutating func prepareSystemTopics(for filter: UnsafeRawBufferPointer) {
        if system.subscribe(filter, at: context.now) == .refresh { _ = refreshSystemTopics() }
    }

    /// Publishes the topics if they are due.
    package mutating func publishDueSystemTopics() {
        guard system.isDue(at: context.now) else { return }
        let hasSubscribers = refreshSystemTopics()
        system.published(at: context.now, hasSubscribers: hasSubscribers)
    }

    /// Publishes changed values; false without any subscriber.
    private mutating func refreshSystemTopics() -> Bool {
        // A topic lookup does not find groups whose members are all offline.
        var hasSubscribers = subscriptions.hasShared
        for (topic, change) in system.refresh(figures, at: context.now) {
            if let change { publishSystemMessage(topic, change) }
            if !hasSubscribers {
                hasSubscribers = topic.withUnsafeBytes {
                    !receivers(of: $0, isCounted: false).isEmpty
                }
            }
        }
        return hasSubscribers
    }

    /// Retains a new value and sends it to subscribers.
    private mutating func publishSystemMessage(_ topic: [UInt8], _ value: String) {
        let message = topic.withUnsafeBytes { topic in
            Array(value.utf8).withUnsafeBytes { payload in
                Message(topic: topic, payload: payload, qos: .atMostOnce, retain: true, pool: pool)
            }
        }
        defer { message.release(in: pool) }
        retained.keepSystem(message)
        for match in receivers(of: message.topic, isCounted: false) {
            sendSystemMessage(message, to: match.session, retain: false)
        }
        guard subscriptions.hasShared else { return }
        for choice in chooseMembers(
            message.topic, qos: .atMostOnce, bytes: message.contentBytes, isCounted: false)
        {
            sendSystemMessage(message, to: choice.session, retain: false)
        }
    }

    /// Sends one of the broker's own values. Offline clients and slow readers miss it.
    ///
    /// Only the connection's bytes count it, so that watching does not change the watched figures.
    package mutating func sendSystemMessage(_ message: Message, to session: UInt32, retain: Bool) {
        guard let target = sessions[session].connection, connections[target].machine.isOpen,
            connections[target].outlet.count < context.limits.outputBytes
        else { return }
        connections[target].outlet.append(
            message, qos: .atMostOnce, retain: retain, pool: context.pool)
        connections.markDirty(target)
    }
}
