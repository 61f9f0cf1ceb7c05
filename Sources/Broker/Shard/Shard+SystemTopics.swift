import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// What a shard keeps for its topics `$SYS/broker/...`.
struct SystemTopics {
    /// 0 turns the topics off.
    let intervalMilliseconds: UInt64
    let startedAt: MonotonicTime
    let startedAtMs: Int64
    /// Empty while nobody has asked for them.
    fileprivate var topics: [SystemTopic] = []
    /// The payload that each topic had last.
    fileprivate var values: [String] = []
    /// The part of the retained messages that is ours.
    fileprivate var retained = 0
    fileprivate var retainedBytes = 0
    fileprivate var retainedWeight = 0
    fileprivate var load: LoadAverages
    fileprivate var refreshedAt: MonotonicTime?
    /// When the topics are published again; `nil` while nobody subscribes to any.
    fileprivate(set) var deadline: MonotonicTime?

    init(interval: Duration, now: MonotonicTime, wallClockMs: Int64) {
        intervalMilliseconds = interval.wholeMilliseconds
        startedAt = now
        startedAtMs = wallClockMs
        load = LoadAverages(intervalMilliseconds: intervalMilliseconds, now: now)
    }
}

/// The broker tells of itself on topics below `$SYS/broker/`.
///
/// They are retained messages of QoS 0 that no store holds: whoever subscribes gets the latest, and
/// then what changes, once per interval. As long as nobody subscribes, nothing is published and an idle
/// broker sleeps; the first subscription has the values made anew before it is served.
extension Shard {
    // MARK: Figures

    /// How things stand, for metrics; process figures but memory are left to the caller.
    package var figures: BrokerFigures {
        var figures = BrokerFigures()
        figures.version = outside.version
        figures.durability = outside.durability
        figures.startedAtMs = system.startedAtMs
        figures.uptimeSeconds = now.milliseconds(since: system.startedAt) / 1_000
        figures.connections = activeConnections
        figures.connectionsPending = pendingConnections
        figures.connectionsPeak = counters.connectionsPeak
        figures.connectionsLimit = settings.mostConnections
        figures.connectionsOpened = counters.connectionsOpened
        figures.connectionsAdmitted = counters.connectionsAdmitted
        figures.connectionsRefused = counters.connectionsRefused
        figures.connectionsClosed = counters.closed.figures
        figures.takeOversDelayed = counters.takeOversDelayed
        figures.protocolViolations = counters.protocolViolations
        figures.sessions = sessions.count
        figures.persistentSessions = persistentSessions
        figures.sessionsExpired = counters.sessionsExpired
        figures.subscriptions = trie.count
        figures.sharedSubscriptions = shared.count
        figures.retained = retainedCount
        figures.retainedBytes = retainedBytes
        figures.retainedWalks = retainedJobs.count
        addTraffic(to: &figures)
        figures.publishersPaused = counters.publishersPaused
        figures.authenticationsWaiting = outside.authenticationsWaiting
        figures.commitsPending = commits.pendingCount
        figures.tlsHandshakes = counters.handshakes.figures
        figures.tlsVersions = counters.tlsVersions.figures
        figures.tlsHandshakeFailures = counters.handshakeFailures.figures
        figures.process.residentBytes = outside.residentBytes
        figures.process.peakResidentBytes = outside.peakResidentBytes
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
        figures.dropped = counters.dropped.figures
        figures.queued = totals.waiting
        figures.queuedBytes = totals.waitingBytes
        figures.inFlight = totals.inFlight
        figures.limitsReached = counters.limits.figures
        figures.accessRefusals = counters.accessRefusals.figures
    }

    /// Retained messages of clients.
    var retainedCount: Int { retained.count - system.retained }
    /// Their bytes.
    var retainedBytes: Int { retained.byteCount - system.retainedBytes }
    /// What their topics count against `limits.max_retained`.
    var retainedWeight: Int { retained.weight - system.retainedWeight }

    /// A client is not read from now on: counts which limit it has met.
    mutating func notePausingLimit(_ waiting: AcknowledgementQueue) {
        counters.publishersPaused += 1
        if Int(waiting.requests) >= settings.maxUnacknowledgedPublishes {
            counters.limits.add(.maxUnacknowledgedPublishes)
        } else if waiting.requestBytes >= settings.maxUnacknowledgedPublishBytes {
            counters.limits.add(.maxUnacknowledgedBytes)
        } else {
            counters.limits.add(.outputBytes)
        }
    }

    // MARK: Samples

    /// Whether ``takeSample()`` is due: once per interval, in the first turn that happens.
    package var isSampleDue: Bool {
        system.intervalMilliseconds > 0 && system.load.isDue(at: now)
    }

    /// Takes the counters into the load averages, before the turn changes them.
    package mutating func takeSample() {
        var sample = LoadAverages.Sample()
        for quantity in LoadAverages.Quantity.allCases { sample.append(count(of: quantity)) }
        system.load.add(sample, at: now)
    }

    private func count(of quantity: LoadAverages.Quantity) -> UInt64 {
        switch quantity {
        case .connections: counters.connectionsAdmitted
        case .sockets: counters.connectionsOpened
        case .packetsReceived: counters.packetsReceived
        case .packetsSent: counters.packetsSent
        case .publishesReceived: counters.publishesReceived
        case .publishesSent: counters.publishesSent
        case .publishesDropped: counters.dropped.total
        case .bytesReceived: outside.bytesReceived
        case .bytesSent: outside.bytesSent
        }
    }

    // MARK: Publishing

    /// A subscription to this filter is about to be added: the topics are published from now on, and
    /// what it is served first is no older than the interval.
    mutating func prepareSystemTopics(for filter: UnsafeRawBufferPointer) {
        guard system.intervalMilliseconds > 0, system.deadline == nil,
            SystemTopic.isReserved(SharedSubscriptions.filter(in: filter) ?? filter)
        else { return }
        let refreshedAt = system.refreshedAt
        if let refreshedAt, now.milliseconds(since: refreshedAt) < system.intervalMilliseconds {
            scheduleRefresh(after: refreshedAt)
        } else {
            refreshSystemTopics()
            scheduleRefresh(after: now)
        }
    }

    /// Other access rules apply: who had no right to the topics may have it from now on.
    mutating func resumeSystemTopics() {
        guard system.intervalMilliseconds > 0, system.deadline == nil,
            let refreshedAt = system.refreshedAt
        else { return }
        scheduleRefresh(after: refreshedAt)
    }

    /// Publishes what has changed when its time has come.
    mutating func publishDueSystemTopics() {
        guard let deadline = system.deadline, deadline <= now else { return }
        if refreshSystemTopics() { scheduleRefresh(after: now) } else { system.deadline = nil }
    }

    private mutating func scheduleRefresh(after time: MonotonicTime) {
        system.deadline = time.advanced(byMilliseconds: system.intervalMilliseconds)
    }

    /// Makes all values anew; false when nobody subscribes to any topic.
    @discardableResult
    private mutating func refreshSystemTopics() -> Bool {
        if system.topics.isEmpty {
            system.topics = SystemTopic.all()
            system.values = [String](repeating: "", count: system.topics.count)
        }
        system.refreshedAt = now
        let figures = figures
        // Members of a group that are away are not found by a topic.
        var hasSubscribers = !shared.isEmpty
        for index in system.topics.indices {
            let topic = system.topics[index]
            let value = topic.value(figures, system.load)
            if value != system.values[index] {
                system.values[index] = value
                publishSystemMessage(topic.name, value)
            }
            if !hasSubscribers {
                hasSubscribers = topic.name.withUnsafeBytes {
                    !receivers(of: $0, isCounted: false).isEmpty
                }
            }
        }
        return hasSubscribers
    }

    /// Keeps a new value for later subscribers, and sends it to those that are there.
    private mutating func publishSystemMessage(_ topic: [UInt8], _ value: String) {
        let message = topic.withUnsafeBytes { topic in
            Array(value.utf8).withUnsafeBytes { payload in
                Message(topic: topic, payload: payload, qos: .atMostOnce, retain: true, pool: pool)
            }
        }
        defer { message.release(in: pool) }
        let (count, bytes, weight) = (retained.count, retained.byteCount, retained.weight)
        retained.update(message)
        system.retainedWeight += retained.weight - weight
        system.retained += retained.count - count
        system.retainedBytes += retained.byteCount - bytes
        for match in receivers(of: message.topic, isCounted: false) {
            sendSystemMessage(message, to: match.session, retain: false)
        }
        guard !shared.isEmpty else { return }
        for choice in chooseMembers(message.topic, qos: .atMostOnce, isCounted: false) {
            sendSystemMessage(message, to: choice.session, retain: false)
        }
    }

    /// Sends one of our values; whoever is away or does not read misses it and gets the next.
    ///
    /// Values are in no counter but the connection's bytes: their subscriber would otherwise see what
    /// watching costs rather than what clients do.
    private mutating func sendSystemMessage(
        _ message: Message, to session: UInt32, retain: Bool
    ) {
        guard let target = sessions[session].connection, connections[target.index].isOpen,
            connections[target.index].output.count < settings.outputBytes
        else { return }
        message.append(
            to: &connections[target.index].output, qos: .atMostOnce, retain: retain,
            isDuplicate: false, packetIdentifier: 0, pool: pool)
        markDirty(target)
    }

    /// Sends a retained message to a new subscription if it is one of ours; false when it is not.
    mutating func sendRetainedSystemMessage(_ message: Message, to session: UInt32) -> Bool {
        guard SystemTopic.isReserved(message.topic) else { return false }
        sendSystemMessage(message, to: session, retain: true)
        return true
    }

    // MARK: What clients publish there

    /// Whether a client's message goes nowhere because of its topic; it is counted, and reported once
    /// per session.
    @inline(__always)
    mutating func refusesTopic(_ topic: UnsafeRawBufferPointer, from session: UInt32) -> Bool {
        // Of all topic names, `$` begins few.
        guard topic.first == UInt8(ascii: "$"), SystemTopic.isClosedToClients(topic) else {
            return false
        }
        drop(session, .reservedTopic)
        return true
    }

    /// The same for the will of a connection that ends, unless it would not have been published.
    mutating func refusesWill(
        _ will: Message?, from session: UInt32, _ reason: CloseReason
    ) -> Bool {
        guard let will, reason != .disconnect, reason != .shutdown else { return false }
        return refusesTopic(will.topic, from: session) || !mayPublishWill(will, of: session)
    }
}
