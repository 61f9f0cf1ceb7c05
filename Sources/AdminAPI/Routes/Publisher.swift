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

    /// The QoS for a number from 0 to 2; the default without one.
    static func qos(_ number: Int64?) -> QoS {
        number.flatMap { QoS(rawValue: UInt8($0)) } ?? defaultQoS
    }

    /// A new message identifier.
    func makeMessageID() -> String {
        var generator = SystemRandomNumberGenerator()
        return MessageID.make(unixMilliseconds: now(), using: &generator)
    }

    /// Returns when the data plane has stored the message as `durability` requires.
    ///
    /// - Parameters:
    ///   - publication: The message.
    ///   - messageID: Its identifier; `nil` generates one.
    ///   - caller: The publisher, for the log.
    /// - Returns: The answer.
    /// - Throws: ``Problem`` when the message is too large or not accepted.
    func publish(
        _ publication: Publication, messageID: String? = nil, for caller: Caller?
    ) async throws(Problem) -> PublishResult {
        let packetBytes = Self.packetBytes(of: publication)
        guard packetBytes <= maximumPacketBytes else {
            throw Problem(
                .tooLarge,
                "The message makes a PUBLISH packet of \(packetBytes) bytes; "
                    + "the limit is \(maximumPacketBytes).",
                fix: "Send a smaller payload, or raise limits.max_packet.")
        }
        let counts: PublishCounts = try await broker.ask { .publish(publication, $0) }
        if let caller { log.note(caller) }
        return PublishResult(
            messageID: messageID ?? makeMessageID(), durability: durability, counts: counts)
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
