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

    /// Prepares for a new subscription; `filter` is the plain part of a shared one. There are no other
    /// subscribers then.
    package mutating func prepareSystemTopics(for filter: UnsafeRawBufferPointer) {
        if system.subscribe(filter, at: context.now) == .refresh { _ = refreshSystemTopics() }
    }

    /// Begins to publish the topics if they are due.
    package mutating func publishDueSystemTopics() {
        guard system.isDue(at: context.now) else { return }
        system.begin(refreshSystemTopics(), hasShared: subscriptions.hasShared)
        continueSystemTopics()
    }

    /// Retains changed values. Returns all topics, with the values that have changed.
    private mutating func refreshSystemTopics() -> [(topic: [UInt8], change: String?)] {
        let topics = system.refresh(figures, at: context.now)
        for (topic, change) in topics {
            guard let change else { continue }
            let message = systemMessage(topic, change)
            retained.keepSystem(message)
            message.release(in: pool)
        }
        return topics
    }

    private func systemMessage(_ topic: [UInt8], _ value: String) -> Message {
        topic.withUnsafeBytes { topic in
            Array(value.utf8).withUnsafeBytes { payload in
                Message(topic: topic, payload: payload, qos: .atMostOnce, retain: true, pool: pool)
            }
        }
    }

    /// Goes on with the publication of changed values, for what the turn has left.
    package mutating func continueSystemTopics() {
        while !context.budget.isSpent, let (topic, change) = system.next {
            let message = systemMessage(topic, change ?? "")
            defer { message.release(in: pool) }
            let copy = change == nil ? nil : AtMostOnceCopy.system(message)
            guard
                isMatched(
                    message.topic, qos: change == nil ? nil : .atMostOnce, for: .system, copy: copy)
            else { return }
            let count = publishSystemMessage(message, isChanged: change != nil)
            endMatch(of: .system)
            system.published(at: context.now, hasSubscribers: count > 0)
        }
    }

    /// Sends a value that has changed to its subscribers; returns their number.
    private mutating func publishSystemMessage(_ message: Message, isChanged: Bool) -> Int {
        let matches = receivers(of: message.topic, isCounted: false)
        guard isChanged else { return matches.count }
        connections.beginDelivery(to: matches.count)
        for match in matches { sendSystemMessage(message, to: match.session, retain: false) }
        connections.endDelivery()
        var count = matches.count
        if subscriptions.hasShared {
            let choices = chooseMembers(
                message.topic, qos: .atMostOnce, bytes: message.contentBytes, from: .system,
                isCounted: false)
            for choice in choices { sendSystemMessage(message, to: choice.session, retain: false) }
            count += choices.count
        }
        context.budget.spend(
            count * WorkBudget.delivery(bytes: message.contentBytes, qos: .atMostOnce))
        return count
    }
}
