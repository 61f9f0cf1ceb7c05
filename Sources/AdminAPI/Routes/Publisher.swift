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
        let outcome: PublishOutcome = try await broker.ask { .publish(message.publication, $0) }
        note([outcome], of: caller)
        return try result(message.id, outcome)
    }

    /// Publishes checked messages together, in order.
    ///
    /// - Returns: An outcome for each, once all are stored.
    func publish(
        _ group: [Publication], for caller: Caller?
    ) async -> Result<[PublishOutcome], Problem> {
        if group.isEmpty { return .success([]) }
        do throws(Problem) {
            let outcomes: [PublishOutcome] = try await broker.ask { .publishGroup(group, $0) }
            note(outcomes, of: caller)
            return .success(outcomes)
        } catch {
            return .failure(error)
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

    /// Throws ``Problem`` when the message is too large for a packet, or outside the bounds of the
    /// caller, whose rate it counts for.
    func check(_ publication: Publication, of caller: Caller?) throws(Problem) {
        let packetBytes = Self.packetBytes(of: publication)
        guard packetBytes <= maximumPacketBytes else {
            throw Problem(
                .tooLarge,
                "The message makes a PUBLISH packet of \(packetBytes) bytes; "
                    + "the limit is \(maximumPacketBytes).",
                fix: "Send a smaller payload, or raise limits.max_packet.")
        }
        try bounds.admit(publication, of: caller)
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
