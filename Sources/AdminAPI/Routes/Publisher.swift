import BrokerAPI
import Credentials
import MQTTCodec

/// Publishes messages of HTTP callers through the data plane, and builds the answer.
struct Publisher: Sendable {
    /// QoS of a publish without one: the answer acknowledges the message.
    static let defaultQoS = QoS.atLeastOnce

    let broker: any BrokerControl
    /// Largest PUBLISH packet in bytes.
    let maximumPacketBytes: Int
    /// "none", "interval" or "sync".
    let durability: String
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64
    let log: PublishLog
    let batches: BatchPlaces
    let ids = MessageIDs()
    let bounds: PublishBounds
    /// Messages to topics that one of these matches have receipts unless the caller says otherwise.
    let receiptTopics: [TokenTopic]

    /// The QoS for a number from 0 to 2; the default without one.
    static func qos(_ number: Int64?) -> QoS {
        number.flatMap { QoS(rawValue: UInt8($0)) } ?? defaultQoS
    }

    /// Seconds after which a message may expire.
    static let expirySeconds: ClosedRange<Int64> = 1...4_294_967_295

    /// The UNIX time in milliseconds at which a message expires; `nil` for never.
    func expiry(inSeconds seconds: Int64?) -> Int64? { expiry(inSeconds: seconds, after: now()) }

    func expiry(inSeconds seconds: Int64?, after nowMs: Int64) -> Int64? {
        seconds.map { nowMs + $0 * 1000 }
    }

    /// The caller's identifier for a message, or a new one.
    func messageID(_ given: String?) -> MessageID {
        given.map { .given($0) } ?? ids.make(unixMilliseconds: now())
    }

    /// Returns when the data plane has stored the message as `durability` requires, or had stored it
    /// before.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - caller: The publisher.
    /// - Returns: The answer.
    /// - Throws: ``Problem`` when the message is too large, outside the caller's bounds or not
    ///   accepted, or when its key is that of another one.
    func publish(
        _ message: PreparedMessage, for caller: Caller?
    ) async throws(Problem) -> PublishResult {
        try check(message.publication, of: caller)
        let outcome = try await carryOut(message.publication, message.obstacle, for: caller) {
            publication async throws(Problem) in
            try await broker.ask { .publish(publication, $0) }
        }
        note([outcome], of: caller)
        return try result(message.id, outcome)
    }

    /// Has one message published within the caller's rate. A repeat is recognised before anything
    /// else: it counts for no rate, and no obstacle keeps its answer back.
    ///
    /// - Parameters:
    ///   - publication: The message, whose topic and size are checked.
    ///   - obstacle: Why it cannot be published unless it was before; `nil` for nothing.
    ///   - caller: The publisher.
    ///   - send: Hands it to the data plane.
    /// - Returns: The outcome.
    /// - Throws: ``Problem``: the obstacle, 429 above the rate, or what `send` throws.
    func carryOut(
        _ publication: Publication, _ obstacle: Problem?, for caller: Caller?,
        _ send: (Publication) async throws(Problem) -> PublishOutcome
    ) async throws(Problem) -> PublishOutcome {
        var publication = publication
        if let caller { publication.owner = caller.owner }
        guard let obstacle = obstacle ?? bounds.charge(caller) else {
            let outcome = try await send(publication)
            if case .repeated = outcome { bounds.refund(caller) }
            return outcome
        }
        guard publication.identity != nil else { throw obstacle }
        publication.isOnlyRepeated = true
        let outcome = try await send(publication)
        if outcome == .notRepeated { throw obstacle }
        return outcome
    }

    /// Publishes checked messages together, in order.
    ///
    /// The repeats of a caller with a rate are looked for first: they count for nothing, so that
    /// sending everything again comes to those that are new.
    ///
    /// - Returns: An outcome for each, once all are stored.
    func publish(
        _ messages: [PreparedMessage], for caller: Caller?
    ) async -> [Result<PublishOutcome, Problem>] {
        var group = MessageGroup(messages)
        if bounds.hasRate(caller) {
            let keyed = messages.indices.filter { messages[$0].publication.identity != nil }
            await send(&group, keyed, of: caller, onlyRepeats: true)
            for index in messages.indices where group.outcomes[index] == nil {
                if group.obstacles[index] == nil {
                    group.obstacles[index] = bounds.charge(caller)
                    group.isCharged[index] = group.obstacles[index] == nil
                }
            }
        }
        await send(&group, messages.indices.filter { group.outcomes[$0] == nil }, of: caller)
        for index in messages.indices where group.isCharged[index] {
            if case .success(.repeated) = group.outcomes[index] { bounds.refund(caller) }
        }
        let outcomes = group.outcomes.map { $0 ?? .failure(.unanswered) }
        note(outcomes.compactMap { try? $0.get() }, of: caller)
        return outcomes
    }

    /// Hands some messages of a group to the data plane, and takes their outcomes. Those with an
    /// obstacle are only asked for as repeats, as all are with `onlyRepeats`, which leaves the
    /// outcome of others open.
    private func send(
        _ group: inout MessageGroup, _ indices: [Int], of caller: Caller?, onlyRepeats: Bool = false
    ) async {
        let owner = caller?.owner ?? .unknown
        var sent: [Int] = []
        var publications: [Publication] = []
        for index in indices {
            var publication = group.messages[index].publication
            publication.owner = owner
            if onlyRepeats || group.obstacles[index] != nil {
                guard publication.identity != nil else {
                    group.outcomes[index] = group.obstacles[index].map { .failure($0) }
                    continue
                }
                publication.isOnlyRepeated = true
            }
            sent.append(index)
            publications.append(publication)
        }
        guard !sent.isEmpty else { return }
        let handed = publications
        do throws(Problem) {
            let outcomes: [PublishOutcome] = try await broker.ask { .publishGroup(handed, $0) }
            for (index, outcome) in zip(sent, outcomes) {
                guard outcome == .notRepeated else {
                    group.outcomes[index] = .success(outcome)
                    continue
                }
                if !onlyRepeats, let obstacle = group.obstacles[index] {
                    group.outcomes[index] = .failure(obstacle)
                }
            }
        } catch {
            for index in sent { group.outcomes[index] = .failure(error) }
        }
    }

    /// Counts what was published for the log.
    private func note(_ outcomes: [PublishOutcome], of caller: Caller?) {
        var published = 0
        for case .published in outcomes { published += 1 }
        if let caller, published > 0 { log.note(caller, messages: published) }
    }

    /// The answer for a message.
    ///
    /// - Throws: ``Problem`` for one that was not published, now or before.
    func result(_ id: MessageID, _ outcome: PublishOutcome) throws(Problem) -> PublishResult {
        switch outcome {
        case .published(let counts):
            return PublishResult(messageID: id.text, durability: durability, counts: counts)
        case .repeated(let counts, let first):
            // A repeat has the caller's own identifier again.
            let id = if case .given = id { id } else { MessageID.made(first) }
            return PublishResult(
                messageID: id.text, durability: durability, counts: counts, duplicate: true)
        case .keyReused: throw .keyReused
        case .notRepeated: throw .unanswered
        case .keysAreOff: throw .keysAreOff
        case .receiptsAreOff: throw .receiptsAreOff
        case .scheduled(let time):
            return PublishResult(
                messageID: id.text, durability: durability, counts: PublishCounts(),
                scheduled: ScheduledTime(deliverAtMs: time))
        case .alreadyScheduled: throw .alreadyScheduled
        case .tooManyScheduled: throw .tooManyScheduled
        case .refused(let reason): throw broker.problem(reason)
        }
    }

    /// Throws ``Problem`` when the message is too large for a packet, or its topic is none of the
    /// caller's.
    func check(_ publication: Publication, of caller: Caller?) throws(Problem) {
        let packetBytes = Self.packetBytes(of: publication)
        guard packetBytes <= maximumPacketBytes else {
            throw Problem(
                .tooLarge,
                "The message makes a PUBLISH packet of \(packetBytes) bytes; "
                    + "the limit is \(maximumPacketBytes).",
                fix: "Send a smaller payload, or raise limits.max_packet.")
        }
        try bounds.allow(publication.topic, for: caller)
    }

    /// Size of the largest packet for the message: fixed header, topic, packet identifier, payload
    /// and a sequence.
    private static func packetBytes(of publication: Publication) -> Int {
        let stampBytes = publication.sequence == nil ? 0 : Publication.mostStampBytes
        let remaining = 2 + publication.topic.count + 2 + publication.payload.count + stampBytes
        let lengthBytes =
            switch remaining {
            case ..<128: 1
            case ..<16_384: 2
            case ..<2_097_152: 3
            default: 4
            }
        return 1 + lengthBytes + remaining
    }
}

/// Messages of a batch on their way to the data plane.
private struct MessageGroup {
    let messages: [PreparedMessage]
    var outcomes: [Result<PublishOutcome, Problem>?]
    /// Why a message is not published unless it was before.
    var obstacles: [Problem?]
    /// True for those that were counted for the caller's rate.
    var isCharged: [Bool]

    init(_ messages: [PreparedMessage]) {
        self.messages = messages
        outcomes = Array(repeating: nil, count: messages.count)
        obstacles = messages.map(\.obstacle)
        isCharged = Array(repeating: false, count: messages.count)
    }
}

extension Problem {
    /// The data plane left a message out, which only a fault of the broker can cause.
    fileprivate static let unanswered = Problem(
        .internalError, "The broker has lost the outcome of this message.",
        fix: "Send it again with the same key.")
}
