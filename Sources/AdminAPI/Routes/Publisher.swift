import BrokerAPI
import MQTTCodec

/// Hands messages from HTTP to the data plane, and turns the counts into the publisher's answer.
struct Publisher: Sendable {
    /// QoS of a publish that names none: the caller has been told that we took it.
    static let defaultQoS = QoS.atLeastOnce

    let broker: any BrokerControl
    /// Bytes of a whole PUBLISH packet.
    let maximumPacketBytes: Int
    /// "none", "interval" or "sync".
    let durability: String
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64
    let log: PublishLog

    /// The QoS that a caller gave as a number from 0 to 2.
    static func qos(_ number: Int64?) -> QoS {
        number.flatMap { QoS(rawValue: UInt8($0)) } ?? defaultQoS
    }

    /// A fresh name for a message.
    func makeMessageID() -> String {
        var generator = SystemRandomNumberGenerator()
        return MessageID.make(unixMilliseconds: now(), using: &generator)
    }

    /// Returns once the data plane has taken the message as `durability` promises.
    ///
    /// - Parameters:
    ///   - publication: The message.
    ///   - messageID: Its name; `nil` has one made.
    ///   - caller: Whose message it is, for the log.
    /// - Returns: The publisher's answer.
    /// - Throws: ``Problem`` when the message is too large or the data plane does not take it.
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

    /// The largest packet that the message can become: fixed header, topic, packet identifier,
    /// payload and a sequence.
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
