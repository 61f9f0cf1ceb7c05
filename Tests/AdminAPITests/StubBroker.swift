import Addresses
import AdminAPI
import BrokerAPI
import Dispatch
import Structures
import Synchronization

/// A data plane that records requests and gives prepared answers.
final class StubBroker: BrokerControl {
    struct State {
        var publications: [Publication] = []
        /// Sizes of the groups that came.
        var groups: [Int] = []
        /// By payload: messages of groups that are refused.
        var refusals: [[UInt8]: BrokerUnavailable] = [:]
        /// By payload: messages that are not simply published.
        var outcomes: [[UInt8]: PublishOutcome] = [:]
        /// True when repeats are recognised, in all that is published from then on.
        var keepsKeys = false
        /// By key, the digests of what was published.
        var keys: [UInt128: UInt128] = [:]
        /// What was asked for as a repeat only, and was none.
        var asked: [PublishIdentity] = []
        var disconnected: [String] = []
        var statusRequests = 0
        var queries: [ClientQuery] = []
        /// If set, the answer to every request.
        var unavailable: BrokerUnavailable?
        /// The delay of each answer.
        var delay: Duration = .zero
        var details: [String: ClientDetail] = [:]
        /// The answer to every client query.
        var page = ClientPage(clients: [], next: nil)
        var counts = PublishCounts(matched: 3, online: 2, queued: 1, dropped: 0)
        var queueQueries: [QueueQuery] = []
        var queues: [String: QueuePage] = [:]
        var receipts: [String: MessageReceipt] = [:]
        var scheduled: [String: ScheduledMessage] = [:]
        var disconnectedUsers: [String] = []
        var lockouts: [Lockout] = []
        /// For each request to clear them, the network; `nil` for all.
        var clearedNetworks: [IPNetwork?] = []
        /// All tables of bans that came.
        var banTables: [BanTable] = []
        /// Connections that each of them closes.
        var bannedConnections = 0
        /// By client identifier.
        var tags: [String: [String]] = [:]
        /// The answer to every change of tags; `nil` carries it out.
        var tagChange: TagChange?
        /// The answers to requests for pages of tags and of clients with a tag, by their `from`.
        var tagPages: [UInt32: TagPage] = [:]
        var taggedClientPages: [UInt32: TaggedClientPage] = [:]
        var events: [String: [ClientEvent]] = [:]
        /// By client identifier.
        var reports: [String: ClientReport] = [:]
        /// The answers to requests for pages of reports, by their `from`.
        var arrivalPages: [UInt32: ArrivalPage] = [:]
        /// For each such request: true when it was for clients with losses.
        var arrivalRequests: [Bool] = []
        var previews: [PushTarget] = []
        var preview = PushPreview(matched: 4, online: 1, offline: 2, withoutSession: 1)
        /// All that came, also those that were not taken.
        var pushRequests: [PushRequest] = []
        /// The answer to every push; `nil` takes it.
        var pushOutcome: PublishOutcome?
        /// True when a push with receipts is not taken.
        var hasReceiptsOff = false
        var pushes: [String: PushStatus] = [:]
        /// By client identifier.
        var devices: [String: DeviceDetail] = [:]
        var hasNoRoomForDevices = false
        var trial = WakeTrial(outcome: "accepted")
        var notReadyReason: String?
        /// The state of a drain that is under way.
        var drain: DrainStatus?
        /// The answer to its end; `nil` ends it.
        var drainEnd: DrainEnd?
        var damage: [String] = []
        var backups: [String] = []
        /// The file of bans that came with the last of them.
        var savedBans: [UInt8]?
        var backupFailure: BackupFailure?
        var subscriptions: [ListedSubscription] = []
        var retained: [String: RetainedMessage] = [:]
        var retainedQueries: [RetainedQuery] = []
        var traces: [TraceRequest] = []
        /// Without any, there are too many traces.
        var traceLines: [TraceLines] = []
        var endedTraces = 0

        /// The outcome of a message that is not to be published, as in the data plane. Keeps the
        /// key of another.
        mutating func repeated(_ publication: Publication) -> PublishOutcome? {
            if keepsKeys, let identity = publication.identity {
                if let digest = keys[identity.key] {
                    return digest == identity.digest
                        ? .repeated(counts, messageID: 1) : .keyReused
                }
                if publication.isOnlyRepeated {
                    asked.append(identity)
                } else {
                    keys[identity.key] = identity.digest
                }
            }
            return publication.isOnlyRepeated ? .notRepeated : nil
        }

        /// A page with one subscription at most.
        func subscriptionPage(_ query: SubscriptionQuery) -> SubscriptionPage {
            let place = Int(query.from)
            return SubscriptionPage(
                subscriptions: Array(subscriptions.dropFirst(place).prefix(1)),
                next: place + 1 < subscriptions.count ? "\(place + 1)" : nil)
        }
    }

    private let state = Mutex(State())

    init(_ change: (inout State) -> Void = { _ in }) {
        state.withLock { change(&$0) }
    }

    var publications: [Publication] { state.withLock { $0.publications } }
    var groups: [Int] { state.withLock { $0.groups } }
    var disconnected: [String] { state.withLock { $0.disconnected } }
    var statusRequests: Int { state.withLock { $0.statusRequests } }
    var queries: [ClientQuery] { state.withLock { $0.queries } }
    var queueQueries: [QueueQuery] { state.withLock { $0.queueQueries } }
    var disconnectedUsers: [String] { state.withLock { $0.disconnectedUsers } }
    var clearedNetworks: [IPNetwork?] { state.withLock { $0.clearedNetworks } }
    var banTables: [BanTable] { state.withLock { $0.banTables } }
    var savedBans: [UInt8]? { state.withLock { $0.savedBans } }
    var backups: [String] { state.withLock { $0.backups } }

    var previews: [PushTarget] { state.withLock { $0.previews } }
    var pushRequests: [PushRequest] { state.withLock { $0.pushRequests } }

    var retainedQueries: [RetainedQuery] { state.withLock { $0.retainedQueries } }
    var traces: [TraceRequest] { state.withLock { $0.traces } }
    var endedTraces: Int { state.withLock { $0.endedTraces } }

    /// Has what was asked for as a repeat be one from now on.
    func acceptAsked() {
        state.withLock { state in
            for identity in state.asked { state.keys[identity.key] = identity.digest }
        }
    }

    func change(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
    }

    func send(_ command: BrokerCommand) {
        let (unavailable, delay) = state.withLock { ($0.unavailable, $0.delay) }
        if let unavailable {
            command.refuse(unavailable)
        } else if delay > .zero {
            // Tests block the threads of the concurrency pool.
            DispatchQueue(label: "stub broker").asyncAfter(
                deadline: .now() + .milliseconds(Int(delay / .milliseconds(1)))
            ) { self.answer(command) }
        } else {
            answer(command)
        }
    }

    private func answer(_ command: BrokerCommand) {
        switch command {
        case .status(let reply):
            state.withLock { $0.statusRequests += 1 }
            reply(.success(Self.status))
        case .figures(let reply): reply(.success(Self.figures))
        case .clients(let query, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.queries.append(query)
                        return state.page
                    }))
        case .subscriptions(let query, let reply):
            reply(.success(state.withLock { $0.subscriptionPage(query) }))
        case .topicReceivers(let topic, _, _, let reply):
            reply(
                .success(TopicReceivers(topic: topic, matched: 0, receivers: [], groups: [])))
        case .retainedList(let query, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.retainedQueries.append(query)
                        return RetainedPage(
                            retained: state.retained.values.map(\.summary), next: nil)
                    }))
        case .retained(let topic, let reply):
            reply(.success(state.withLock { $0.retained[topic] }))
        case .removeRetained(let topic, let reply):
            reply(.success(state.withLock { $0.retained.removeValue(forKey: topic) != nil }))
        case .client(let clientID, let reply):
            reply(.success(state.withLock { $0.details[clientID] }))
        case .history(let clientID, let reply):
            reply(
                .success(
                    ClientHistory(
                        clientID: clientID, events: state.withLock { $0.events[clientID] ?? [] })))
        case .troubles(let kind, let limit, let reply):
            let found = state.withLock { state in
                state.events.sorted { $0.key < $1.key }.compactMap { clientID, events in
                    events.first {
                        ClientEvent.isTrouble($0.kind, reason: $0.reason)
                            && (kind == nil || kind == $0.kind)
                    }.map { ClientTrouble(clientID: clientID, event: $0) }
                }
            }
            reply(.success(Array(found.prefix(limit))))
        case .beginTrace(let request, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.traces.append(request)
                        return state.traceLines.isEmpty ? nil : 1
                    }))
        case .traceLines(_, let reply):
            reply(.success(state.withLock { $0.traceLines.removeFirst() }))
        case .endTrace: state.withLock { $0.endedTraces += 1 }
        case .disconnect(let clientID, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.disconnected.append(clientID)
                        return state.details[clientID]?.summary.connected ?? false
                    }))
        case .endSession(let clientID, let reply):
            reply(.success(state.withLock { $0.details.removeValue(forKey: clientID) != nil }))
        case .disconnectUser(let name, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.disconnectedUsers.append(String(decoding: name, as: UTF8.self))
                        return 2
                    }))
        case .lockouts(let reply): reply(.success(state.withLock { $0.lockouts }))
        case .clearLockouts(let network, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.clearedNetworks.append(network)
                        return state.lockouts.count
                    }))
        case .setBans(let table, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.banTables.append(table)
                        return state.bannedConnections
                    }))
        case .startDrain(let rate, let reference, let reply):
            reply(
                .success(
                    state.withLock { state in
                        let status = DrainStatus(
                            isDrained: false, connections: 250, closed: 1, perSecond: rate,
                            startedAtMs: 1_000, serverReference: reference)
                        state.drain = status
                        return status
                    }))
        case .drainStatus(let reply):
            reply(.success(state.withLock { $0.drain ?? DrainStatus(connections: 250) }))
        case .endDrain(let reply):
            reply(
                .success(
                    state.withLock { state in
                        if let end = state.drainEnd { return end }
                        state.drain = nil
                        return .ended(DrainStatus(connections: 250))
                    }))
        case .queue(let query, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.queueQueries.append(query)
                        return state.queues[query.clientID]
                    }))
        case .dropQueue(let clientID, _, let reply):
            let count = state.withLock { $0.queues.removeValue(forKey: clientID)?.messages.count }
            reply(.success(count.map { QueueDrop(dropped: $0, bound: 0, hasMore: false) }))
        case .receiptEvents(_, _, let reply): reply(.success([]))
        case .receiptEventsTaken: break
        case .question(let asked): state.withLock { $0.answer(asked) }
        case .nextWakes, .wakeAnswers: break
        case .publishGroup(let publications, let reply):
            reply(
                .success(
                    state.withLock { state in
                        state.groups.append(publications.count)
                        return publications.map { publication in
                            if let known = state.repeated(publication) { return known }
                            state.publications.append(publication)
                            return state.refusals[publication.payload].map { .refused($0) }
                                ?? state.outcomes[publication.payload]
                                ?? .published(state.counts)
                        }
                    }))
        case .publish(let publication, let reply):
            reply(
                .success(
                    state.withLock { state in
                        if let known = state.repeated(publication) { return known }
                        state.publications.append(publication)
                        return state.outcomes[publication.payload] ?? .published(state.counts)
                    }))
        }
    }

    var process: ProcessFigures { Self.figures.process }

    /// Without an error there is no store to report one.
    var store: StoreStatus? {
        state.withLock { state in
            state.notReadyReason.map { reason in
                var store = StoreStatus()
                store.notReadyReason = reason
                return store
            }
        }
    }

    var isDraining: Bool { state.withLock { $0.drain != nil } }

    func acceptLoss() async -> [String] {
        state.withLock { state in
            defer { state.damage = [] }
            return state.damage
        }
    }

    func backUp(to directory: String, bans: [UInt8]?) async throws(BackupFailure) {
        let failure = state.withLock { state in
            state.backups.append(directory)
            state.savedBans = bans
            return state.backupFailure
        }
        if let failure { throw failure }
    }

    static let arrivalTotal: ArrivalTotal = {
        var total = ArrivalTotal()
        total.clients = 2
        for (index, counter) in ReportedCounts.all.enumerated() {
            total.counts[keyPath: counter.path] = UInt64(242 + index)
        }
        total.arrivalRate = 0.5
        total.reports = ["taken": 3]
        return total
    }()

    static func report(_ clientID: String) -> ClientReport {
        var counts = ReportedCounts()
        counts.received = 11
        counts.duplicates = 1
        counts.losses = 10
        return ClientReport(
            clientID: clientID, reportedAtMs: 5, sinceMs: 4, network: "wifi", heartbeatSeconds: 240,
            counts: counts)
    }

    static let status: BrokerStatus = {
        var figures = StubBroker.figures
        // A sum of all that would not fit.
        figures.publishesSent.exactlyOnce = 127
        return BrokerStatus(figures, listeners: ["127.0.0.1:1883"])
    }()

    /// Each figure has a distinct value, so that mix-ups show.
    static let figures: BrokerFigures = {
        var figures = BrokerFigures()
        figures.version = "9.9"
        figures.durability = "none"
        figures.startedAtMs = 1_700_000_000_250
        figures.uptimeSeconds = 101
        figures.connections = 102
        figures.connectionsPending = 103
        figures.connectionsPeak = 104
        figures.connectionsLimit = 105
        figures.connectionsOpened = 106
        figures.connectionsAdmitted = 107
        figures.connectionsRefused = 108
        figures.connectionsClosed = [
            BrokerFigures.Count("disconnect", 109), BrokerFigures.Count("keep_alive", 110),
        ]
        figures.protocolViolations = 111
        figures.takeOversDelayed = 198
        figures.sessions = 112
        figures.persistentSessions = 113
        figures.sessionsExpired = 114
        figures.sessionBytes = 213
        figures.sessionBytesLimit = 214
        figures.subscriptions = 115
        figures.sharedSubscriptions = 116
        figures.retained = 117
        figures.retainedBytes = 118
        figures.retainedWalks = 119
        figures.packetsReceived = 120
        figures.packetsSent = 121
        figures.publishesReceived = BrokerFigures.ByQoS(
            atMostOnce: 122, atLeastOnce: 123, exactlyOnce: 124)
        figures.publishesSent = BrokerFigures.ByQoS(
            atMostOnce: 125, atLeastOnce: 126, exactlyOnce: .max)
        figures.publishBytesReceived = 127
        figures.publishBytesSent = 128
        figures.bytesReceived = 129
        figures.bytesSent = 130
        figures.dropped = [BrokerFigures.Count("queue_full", 131)]
        figures.queued = 132
        figures.queuedBytes = 133
        figures.inFlight = 134
        figures.limitsReached = [BrokerFigures.Count("max_packet", 135)]
        figures.accessRefusals = [BrokerFigures.Count("publish", 199)]
        figures.bans = 311
        figures.lockouts = 313
        figures.lockoutsBegun = 314
        figures.bansMet = [BrokerFigures.Count("address", 312)]
        figures.publishersPaused = 136
        figures.devices = 250
        figures.deviceBytes = 251
        figures.deviceRefusals = [BrokerFigures.Count("no_room", 252)]
        figures.wakesOwed = 253
        figures.wakeMessages = [BrokerFigures.Count("new", 254)]
        figures.wakes = [BrokerFigures.Count("accepted", 255)]
        figures.features = [
            .gauge("hermes_stub_bytes", "A gauge.", 239),
            .counter("hermes_stub_total", "A counter.", 240),
            .counters("hermes_stubs_total", by: "kind", "By kind.", [.init("taken", 241)]),
        ]
        figures.reportedGrowth = arrivalTotal.counts
        figures.lostConnections = [LostConnections(cause: .keepAlive, network: "wi\"fi")]
        figures.lostConnections[0].silence.add(milliseconds: 250_000)
        figures.memory = MemoryFigures(usedBytes: 205, limitBytes: 206, unfinishedBytes: 207)
        figures.memoryPressure = 208
        figures.authenticationsWaiting = 137
        figures.commitsPending = 138
        figures.process.residentBytes = 139
        figures.process.cpuSeconds = 140.25
        figures.process.openDescriptors = 141
        figures.process.descriptorLimit = 142
        figures.store.commits = 143
        figures.store.committedBytes = 144
        figures.store.failures = 145
        figures.store.syncMicroseconds = 1_500_000
        figures.store.longestSyncMicroseconds = 250_000
        figures.store.longestCommitMicroseconds = 375_000
        figures.store.movedSegments = 146
        figures.store.movedMessages = 147
        figures.store.waitingSegments = 148
        figures.store.journalBytes = 149
        figures.store.databaseBytes = 150
        figures.store.freeBytes = 151
        figures.admin.refused = [BrokerFigures.Count("missing_token", 152)]
        figures.admin.connectionsRefused = 211
        figures.admin.requests = [
            AdminFigures.Requests(
                method: "GET", route: "/a/{b}", answers: [BrokerFigures.Count("2xx", 215)],
                times: TimeHistogram())
        ]
        figures.admin.connectionsDisplaced = 212
        figures.tlsConnections = 201
        figures.tlsHandshakesUnderWay = 202
        figures.tlsHandshakes = [BrokerFigures.Count("full", 203)]
        figures.tlsHandshakeFailures = [BrokerFigures.Count("not_tls", 204)]
        figures.certificates = [
            BrokerFigures.ExpiringFile(
                listener: 1, file: "/etc/a \"b\".crt", daysLeft: -2.5, expiresAt: 1_700_000_001)
        ]
        figures.revocationLists = [
            BrokerFigures.ExpiringFile(
                listener: 2, file: "/etc/c.crl", daysLeft: 6.5, expiresAt: 1_700_000_002)
        ]
        figures.tlsVersions = [BrokerFigures.Count("1.2", 209), BrokerFigures.Count("1.3", 210)]
        figures.admin.certificate = .init(
            file: "/etc/b.crt", daysLeft: -0.5, expiresAt: 1_700_000_003)
        var listener = BrokerFigures.Listener()
        listener.address = "127.0.0.1:1883"
        (listener.opened, listener.admitted, listener.refused) = (300, 305, 302)
        (listener.closed, listener.admittedClosed) = (303, 1)
        figures.listeners = [listener]
        figures.turns.add(microseconds: 40)
        figures.acknowledgements.add(microseconds: 60, count: 2)
        figures.acknowledgedDeliveriesExactlyOnce.add(microseconds: 600)
        figures.store.commitTimes.add(microseconds: 70, count: 3)
        figures.store.syncTimes.add(microseconds: 50, count: 4)
        figures.longestTurnMicroseconds = 4_500
        figures.admin.webhook = WebhookFigures(
            events: ["refused": 221, "delivered": 220], lastSuccessAtMs: 1_700_000_000_500)
        figures.admin.loginService = LoginServiceFigures(
            logins: ["allowed": 263], inFlight: 264, waiting: 265, remembered: 266,
            isFailing: true)
        var push = PushFigures()
        push.connections = 256
        push.connectionsFailed = 257
        push.answers = ["Success": 258]
        push.repeated = 259
        push.goAways = 260
        var google = PushFigures()
        google.connections = 401
        google.connectionsFailed = 402
        google.answers = ["Success": 403]
        google.repeated = 404
        google.goAways = 405
        figures.admin.wakes = WakeSenders(
            apns: push, fcm: google,
            webhook: WebhookFigures(events: ["accepted": 261, "later": 262]))
        figures.store.damage = ["one", "two", "three"]
        return figures
    }()

    static func summary(_ clientID: String, connected: Bool = true) -> ClientSummary {
        ClientSummary(
            clientID: clientID, userName: "ann", connected: connected,
            address: connected ? "127.0.0.1:50000" : nil, protocolVersion: "3.1.1",
            cleanSession: false, keepAliveSeconds: 120, sinceMs: 1_763_700_000_000,
            subscriptions: 1, inFlight: 0, queued: 2, queuedBytes: 300, dropped: 0)
    }

    static func detail(_ clientID: String, connected: Bool = true) -> ClientDetail {
        ClientDetail(
            summary: summary(clientID, connected: connected),
            subscriptionList: [ClientSubscription(filter: "orders/7/#", qos: 1)], sessionBytes: 576,
            willTopic: nil, lastPacketMsAgo: connected ? 12 : nil, inboundQoS2: 0,
            unacknowledgedPublishes: 0,
            unsentBytes: 0, readingPaused: false, publishesReceived: 1, publishesSent: 2,
            publishesAcknowledged: 2, dropped: [:], lastDisconnectReason: nil)
    }
}
