import AdminAPI
import AdminModel
import Broker
import MQTTCodec
import Reactor
import Store

/// The admin plane's questions, carried through the shard's mailbox.
struct BrokerBridge: BrokerControl {
    let mailbox: Mailbox<ShardMessage>
    /// `nil` with `durability: none`.
    let store: DurableStore?

    func status() async throws(BrokerUnavailable) -> StatusModel {
        try await ask { .status($0) }
    }

    func figures() async throws(BrokerUnavailable) -> BrokerFigures {
        var figures: BrokerFigures = try await ask { .figures($0) }
        figures.process = .read()
        return figures
    }

    func clients(_ query: ClientQuery) async throws(BrokerUnavailable) -> ClientPage {
        try await ask { .clients(query, $0) }
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
