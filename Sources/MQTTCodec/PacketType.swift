/// The upper half of a packet's first byte (section 2.2.1).
public enum PacketType: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case connect = 1
    case connack, publish, puback, pubrec, pubrel, pubcomp
    case subscribe, suback, unsubscribe, unsuback
    case pingreq, pingresp, disconnect

    /// The lower half that this type must carry [MQTT-2.2.2-1]; `nil` for PUBLISH, which uses it.
    public var requiredFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        case .connect, .connack, .puback, .pubrec, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect:
            0
        }
    }

    /// The first byte of every packet of this type; of a QoS 0 PUBLISH for ``publish``.
    public var firstByte: UInt8 { rawValue << 4 | (requiredFlags ?? 0) }
}

/// How often a message may arrive: at most once, at least once, exactly once.
public enum QoS: UInt8, Hashable, Sendable, CaseIterable, Comparable, BitwiseCopyable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Names an exchange between sender and receiver; never 0 [MQTT-2.3.1-1].
public struct PacketIdentifier: Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt16

    public init?(_ rawValue: UInt16) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }

    /// The identifier that belongs to a queue position: 1, 2, … 65,535, 1, …
    ///
    /// Positions less than 65,535 apart never share one, and a position keeps its identifier across
    /// reconnects and restarts [MQTT-4.4.0-1] without anything being stored.
    public init(position: UInt64) {
        rawValue = UInt16(truncatingIfNeeded: position % 65_535 + 1)
    }
}
