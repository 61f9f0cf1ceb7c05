import HermesClientCore
import MQTTCodec

/// A call that the client does not take, and why.
public enum HermesClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A value of the configuration cannot be right.
    case configuration(String)
    /// The storage is locked by another client or belongs to one, or cannot be read or written. What
    /// the call asked for is not kept.
    case storage(String)
    /// The client is stopped, so that the broker cannot answer, and why. Subscriptions and messages
    /// are kept, and sent after the next ``HermesClient/start()``.
    case stopped(HermesClient.StopReason)
    /// QoS 0 needs a connection.
    case notConnected
    /// No topic name by the rules of MQTT 3.1.1, section 4.7.
    case topic(String)
    /// No topic filter by the rules of MQTT 3.1.1, section 4.7.
    case filter(String)
    /// The packet would be too large, in bytes.
    case payloadTooLarge(bytes: Int, limit: Int)
    /// 1,000 messages or 8 MiB wait for the broker.
    case outboxFull
    /// 1,000 topic filters or 256 KiB of them are kept.
    case tooManySubscriptions
    /// The broker has refused the topic filter.
    case subscriptionRefused(String)
    /// QoS 2 needs a storage that survives a restart of the program.
    case qosNeedsStorage
    /// ``HermesClient/discard(_:)`` has taken the message out of the outbox.
    case discarded
    /// A device token or a bundle identifier that cannot be right.
    case device(String)

    /// A sentence that says what is wrong and what to do.
    public var description: String {
        switch self {
        case .configuration(let reason), .storage(let reason), .device(let reason): reason
        case .stopped(let reason):
            "the client is stopped, \(reason.sentence); what the call asked for is kept"
        case .notConnected:
            "there is no connection, and QoS 0 is not kept; wait for one, or use QoS 1"
        case .topic(let topic):
            "\"\(topic)\" is no topic name: it needs 1 to 65,535 bytes without +, # and U+0000"
        case .filter(let filter):
            "\"\(filter)\" is no topic filter: + stands alone in its level, # alone in the last, "
                + "and it has 1 to 65,535 bytes without U+0000"
        case .payloadTooLarge(let bytes, let limit):
            "the message has \(bytes) bytes, and \(limit) may be sent; send it in parts"
        case .outboxFull:
            "1,000 messages or 8 MiB wait for the broker; publish again when some are acknowledged"
        case .tooManySubscriptions:
            "1,000 topic filters or 256 KiB of them are kept; unsubscribe from some, "
                + "or use a wildcard"
        case .subscriptionRefused(let filter):
            "the broker refused \"\(filter)\"; its rules do not let this client subscribe to it"
        case .discarded: "the message was discarded before the broker had taken it over"
        case .qosNeedsStorage:
            "QoS 2 must survive a restart of the program; use Storage.file, or QoS 1"
        }
    }
}

extension HermesClientError {
    init(_ error: PublishError, topic: String) {
        self =
            switch error {
            case .notConnected: .notConnected
            case .topic: .topic(topic)
            case .tooLarge(let bytes, let limit): .payloadTooLarge(bytes: bytes, limit: limit)
            case .outboxFull: .outboxFull
            }
    }

    init(_ error: SubscriptionError, filter: String) {
        self =
            switch error {
            case .filter: .filter(filter)
            case .tooMany: .tooManySubscriptions
            }
    }
}
