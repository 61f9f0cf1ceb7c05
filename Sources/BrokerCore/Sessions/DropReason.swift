import BrokerAPI

/// The reason for which a receiver did not get a message.
public enum DropReason: UInt8, CountLabel, BitwiseCopyable {
    /// QoS 0, and the client was offline.
    case offline
    /// QoS 0, and the client did not read fast enough.
    case slowReader
    /// The queue was full: `limits.queue_messages` or `limits.queue_bytes`.
    case queueFull
    /// The message expired before it could be sent.
    case expired
    /// A client published it below `$SYS/`, which is the broker's (section 4.7.2).
    case reservedTopic
    /// An operator emptied the queue.
    case byOperator
    /// The receiver may no longer read the queued message.
    case notAllowed
    /// A later message of the same collapse key took its place.
    case replaced
    /// The packet would be larger than the client takes (MQTT 5.0, Maximum Packet Size).
    case tooLarge
    /// The client refused the message by PUBACK or PUBREC of MQTT 5.0.
    case refused

    public var name: String {
        switch self {
        case .offline: "offline"
        case .slowReader: "slow_reader"
        case .queueFull: "queue_full"
        case .expired: "expired"
        case .reservedTopic: "reserved_topic"
        case .byOperator: "operator"
        case .notAllowed: "acl"
        case .replaced: "replaced"
        case .tooLarge: "too_large"
        case .refused: "refused"
        }
    }
}

/// Counts of lost messages by reason. The largest value of the integer means that value or more.
public struct DropCounts<Value: FixedWidthInteger & UnsignedInteger & BitwiseCopyable & Sendable>:
    Sendable, BitwiseCopyable
{
    // The size is the number of `DropReason` cases; a test compares them.
    private var counts = InlineArray<10, Value>(repeating: 0)

    public init() {}

    package static var capacity: Int { Self().counts.count }

    public mutating func add(_ reason: DropReason) {
        let index = Int(reason.rawValue)
        if counts[index] < .max { counts[index] += 1 }
    }

    public subscript(reason: DropReason) -> UInt64 { UInt64(counts[Int(reason.rawValue)]) }

    package var total: UInt64 {
        var sum: UInt64 = 0
        for reason in DropReason.allCases { sum += self[reason] }
        return sum
    }

    /// In the order of the cases.
    package var figures: [BrokerFigures.Count] {
        DropReason.allCases.map { BrokerFigures.Count($0.name, self[$0]) }
    }
}
