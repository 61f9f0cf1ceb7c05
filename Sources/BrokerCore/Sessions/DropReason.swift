import BrokerAPI

/// The reason for which a message did not reach a receiver that wanted it.
package enum DropReason: UInt8, CountLabel, BitwiseCopyable {
    /// QoS 0, and the client was offline.
    case away
    /// QoS 0, and the client did not read fast enough.
    case slowReader
    /// The queue was full: `limits.queue_messages`, `limits.queue_bytes`.
    case queueFull
    /// The message expired before it could be sent.
    case expired
    /// Published by a client below `$SYS/`, where only the broker does (section 4.7.2).
    case reservedTopic
    /// The operator emptied the queue.
    case byOperator
    /// The receiver lost the right to read the queued message.
    case notAllowed

    package var name: String {
        switch self {
        case .away: "away"
        case .slowReader: "slow_reader"
        case .queueFull: "queue_full"
        case .expired: "expired"
        case .reservedTopic: "reserved_topic"
        case .byOperator: "operator"
        case .notAllowed: "acl"
        }
    }
}

/// Counts of drops by reason, in place. The highest value of the integer stands for that and more.
package struct DropCounts<Value: FixedWidthInteger & UnsignedInteger & BitwiseCopyable & Sendable>:
    Sendable, BitwiseCopyable
{
    // One for each case of `DropReason`, which a test compares.
    private var counts = InlineArray<7, Value>(repeating: 0)

    package init() {}

    static var capacity: Int { Self().counts.count }

    package mutating func add(_ reason: DropReason) {
        let index = Int(reason.rawValue)
        if counts[index] < .max { counts[index] += 1 }
    }

    package subscript(reason: DropReason) -> UInt64 { UInt64(counts[Int(reason.rawValue)]) }

    var total: UInt64 {
        var sum: UInt64 = 0
        for reason in DropReason.allCases { sum += self[reason] }
        return sum
    }

    /// In the order of the cases.
    var figures: [BrokerFigures.Count] {
        DropReason.allCases.map { BrokerFigures.Count($0.name, self[$0]) }
    }
}
