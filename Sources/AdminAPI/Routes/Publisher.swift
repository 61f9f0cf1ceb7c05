import AdminModel
import HermesMessages

/// Hands messages from HTTP to the data plane, and turns the counts into the publisher's answer.
struct Publisher: Sendable {
    /// QoS of a publish that names none: the caller has been told that we took it.
    static let defaultQoS: UInt8 = 1

    let broker: any BrokerControl
    /// Bytes of a whole PUBLISH packet.
    let maximumPacketBytes: Int
    /// "none", "interval" or "sync".
    let durability: String
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64
    let log: PublishLog

    /// What a route wants published.
    struct Message {
        var topic: PublishTopic
        var payload: [UInt8]
        var qos = Publisher.defaultQoS
        var retain = false
        /// `nil` lets the publisher make one.
        var messageID: String?
        /// `nil` keeps it.
        var expiresInSeconds: Int64?
        var sequenceStamp: SequenceStamp?
    }

    /// A fresh name for a message.
    func makeMessageID() -> String {
        var generator = SystemRandomNumberGenerator()
        return MessageID.make(unixMilliseconds: now(), using: &generator)
    }

    /// Returns once the data plane has taken the message as `durability` promises.
    ///
    /// - Parameters:
    ///   - message: What to publish.
    ///   - caller: Whose message it is, for the log.
    /// - Returns: The publisher's answer.
    /// - Throws: ``Problem`` when the message is too large or the data plane does not take it.
    func publish(
        _ message: Message, for caller: Caller?
    ) async throws(Problem) -> PublishResult {
        let packetBytes = Self.packetBytes(of: message)
        guard packetBytes <= maximumPacketBytes else {
            throw Problem(
                .tooLarge,
                "The message makes a PUBLISH packet of \(packetBytes) bytes; "
                    + "the limit is \(maximumPacketBytes).",
                fix: "Send a smaller payload, or raise limits.max_packet.")
        }
        let publication = Publication(
            topic: message.topic.bytes, payload: message.payload, qos: message.qos,
            retain: message.retain,
            expiresAtMs: message.expiresInSeconds.map { now() + $0 * 1000 },
            sequenceStamp: message.sequenceStamp)
        let counts: PublishCounts
        do {
            counts = try await broker.publish(publication)
        } catch {
            throw Problem(error)
        }
        if let caller { log.note(caller) }
        return PublishResult(
            messageID: message.messageID ?? makeMessageID(), durability: durability,
            matched: counts.matched, online: counts.online, queued: counts.queued,
            dropped: counts.dropped, duplicate: false)
    }

    /// The largest packet that the message can become: fixed header, topic, packet identifier,
    /// payload and a sequence.
    private static func packetBytes(of message: Message) -> Int {
        let stampBytes = message.sequenceStamp == nil ? 0 : 11
        let remaining = 2 + message.topic.text.utf8.count + 2 + message.payload.count + stampBytes
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
