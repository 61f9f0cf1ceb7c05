import AdminAPI
import AdminModel
import Broker
import MQTTCodec
import Store
import Transport

/// The admin plane's questions, carried through the shard's mailbox.
struct BrokerBridge: BrokerControl {
    let mailbox: Mailbox<ShardMessage>
    /// `nil` with `durability: none`.
    let store: DurableStore?

    func status() async throws(BrokerUnavailable) -> StatusModel {
        var status: StatusModel = try await ask { .status($0) }
        status.store = store.map { StoreModel($0.figures) }
        return status
    }

    func figures() async throws(BrokerUnavailable) -> BrokerFigures {
        var figures: BrokerFigures = try await ask { .figures($0) }
        figures.process = .read()
        if let store { figures.store = StoreModel(store.figures) }
        return figures
    }

    func clients(_ query: ClientQuery) async throws(BrokerUnavailable) -> ClientPage {
        let page: ClientPage? = try await ask { .clients(query, $0) }
        guard let page else { throw .stopping }
        return page
    }

    func client(_ clientID: String) async throws(BrokerUnavailable) -> ClientDetail? {
        try await ask { .client([UInt8](clientID.utf8), $0) }
    }

    func disconnect(_ clientID: String) async throws(BrokerUnavailable) -> Bool {
        try await ask { .disconnect([UInt8](clientID.utf8), $0) }
    }

    func publish(_ publication: Publication) async throws(BrokerUnavailable)
        -> AdminAPI.PublishCounts
    {
        guard let qos = QoS(rawValue: publication.qos) else {
            preconditionFailure("a publication with QoS \(publication.qos)")
        }
        let inbound = InboundPublication(
            topic: publication.topic, payload: publication.payload, qos: qos,
            retain: publication.retain, expiresAtMs: publication.expiresAtMs ?? 0,
            sequence: publication.sequenceStamp.map { ($0.channel, $0.tag) })
        let answer: PublishAnswer = try await ask { .publish(inbound, $0) }
        let counts: Broker.PublishCounts
        switch answer {
        case .success(let stored): counts = stored
        case .failure(.stopping): throw .stopping
        case .failure(.storeRefuses): throw isDiskFull ? .diskFull : .storeRefuses
        }
        return AdminAPI.PublishCounts(
            matched: counts.matched, online: counts.online, queued: counts.queued,
            dropped: counts.dropped, sequence: counts.sequence)
    }

    // MARK: Queues

    func queue(_ query: QueueQuery) async throws(BrokerUnavailable) -> QueuePage? {
        let answer: QueueAnswer = try await ask {
            .queue([UInt8](query.clientID.utf8), from: query.from, limit: query.limit, $0)
        }
        switch answer {
        case .page(let page): return page
        case .unknownClient: return nil
        case .unreadable(let reason): throw .unreadable(reason)
        case .stopping: throw .stopping
        }
    }

    func dropQueue(of clientID: String) async throws(BrokerUnavailable) -> Int? {
        var total = 0
        var bound: UInt64?
        // In turns of the shard, up to the message that was the last one when it began.
        while true {
            let below = bound
            let answer: QueueDropAnswer = try await ask {
                .dropQueue([UInt8](clientID.utf8), below: below, $0)
            }
            switch answer {
            case .dropped(let count, let next, let hasMore):
                total += count
                guard hasMore else { return total }
                bound = next
            case .unknownClient: return bound == nil ? nil : total
            case .stopping: throw .stopping
            }
        }
    }

    // MARK: The store

    var notReadyReason: String? { store?.figures.notReadyReason }

    func acceptLoss() async -> [String] {
        guard let store else { return [] }
        return await withCheckedContinuation { continuation in
            store.acceptLoss { continuation.resume(returning: $0) }
        }
    }

    func backUp(to directory: String) async throws(BackupFailure) {
        guard let store else { throw .nothingStored }
        let failure = await withCheckedContinuation { continuation in
            store.backup(to: directory) { continuation.resume(returning: $0) }
        }
        guard let failure else { return }
        switch failure.kind {
        case .outOfSpace: throw .outOfSpace("\(failure)")
        case .other, .permissions: throw .unusableFolder("\(failure)")
        case .inputOutput, .damaged, .newerFormat, .locked: throw .failed("\(failure)")
        }
    }

    private var isDiskFull: Bool {
        guard let figures = store?.figures else { return false }
        return figures.isBelowReserve || figures.failure?.kind == .outOfSpace
    }

    /// Posts a question and waits for its answer, which the shard gives even while it stops.
    private func ask<Answer: Sendable>(
        _ question: (@escaping @Sendable (Answer) -> Void) -> ShardMessage
    ) async throws(BrokerUnavailable) -> Answer {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Answer, BrokerUnavailable>, Never>) in
            let posted = mailbox.post(question { continuation.resume(returning: .success($0)) })
            switch posted {
            case .accepted: return
            case .full: continuation.resume(returning: .failure(.overloaded))
            case .closed: continuation.resume(returning: .failure(.stopping))
            }
        }
        return try result.get()
    }
}

extension StoreModel {
    fileprivate init(_ figures: StoreFigures) {
        self.init()
        notReadyReason = figures.notReadyReason
        commits = figures.commits
        committedBytes = figures.committedBytes
        failures = figures.failures
        syncMicroseconds = figures.syncMicroseconds
        longestSyncMicroseconds = figures.longestSyncMicroseconds
        longestCommitMicroseconds = figures.longestCommitMicroseconds
        movedSegments = figures.movedSegments
        movedMessages = figures.movedMessages
        waitingSegments = figures.waitingSegments
        journalBytes = figures.journalBytes
        databaseBytes = figures.databaseBytes
        freeBytes = figures.freeBytes
        damage = figures.setAsideFiles + figures.damageRecords
        backupPercent = figures.backupPercent
    }
}
