import BrokerAPI
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

    /// The QoS for a number from 0 to 2; the default without one.
    static func qos(_ number: Int64?) -> QoS {
        number.flatMap { QoS(rawValue: UInt8($0)) } ?? defaultQoS
    }

    /// Seconds after which a message may expire.
    static let expirySeconds: ClosedRange<Int64> = 1...4_294_967_295

    /// The UNIX time in milliseconds at which a message expires; `nil` for never.
    func expiry(inSeconds seconds: Int64?) -> Int64? { seconds.map { now() + $0 * 1000 } }

    /// A new message identifier.
    func makeMessageID() -> String {
        ids.make(unixMilliseconds: now())
    }

    /// Returns when the data plane has stored the message as `durability` requires.
    ///
    /// - Parameters:
    ///   - publication: The message.
    ///   - messageID: Its identifier; `nil` generates one.
    ///   - caller: The publisher.
    /// - Returns: The answer.
    /// - Throws: ``Problem`` when the message is too large, outside the caller's bounds or not
    ///   accepted.
    func publish(
        _ publication: Publication, messageID: String? = nil, for caller: Caller?
    ) async throws(Problem) -> PublishResult {
        try check(publication, of: caller)
        let counts: PublishCounts = try await broker.ask { .publish(publication, $0) }
        if let caller { log.note(caller) }
        return result(messageID ?? makeMessageID(), counts)
    }

    /// Publishes checked messages together, in order.
    ///
    /// - Returns: An answer for each, once all are stored.
    func publish(
        _ group: [Publication], for caller: Caller?
    ) async -> [Result<PublishCounts, Problem>] {
        if group.isEmpty { return [] }
        let outcomes: [PublishOutcome]
        do throws(Problem) {
            outcomes = try await broker.ask { .publishGroup(group, $0) }
        } catch {
            return Array(repeating: .failure(error), count: group.count)
        }
        var published = 0
        let answers = outcomes.map { outcome -> Result<PublishCounts, Problem> in
            switch outcome {
            case .published(let counts):
                published += 1
                return .success(counts)
            case .refused(let reason): return .failure(broker.problem(reason))
            }
        }
        if let caller, published > 0 { log.note(caller, messages: published) }
        return answers
    }

    /// The answer for a message that was published.
    func result(_ messageID: String, _ counts: PublishCounts) -> PublishResult {
        PublishResult(messageID: messageID, durability: durability, counts: counts)
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
        let stampBytes = publication.sequence == nil ? 0 : 11
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
