/// The kind of a packet: the upper half of its first byte (section 2.2.1).
public enum PacketType: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case connect = 1
    case connack, publish, puback, pubrec, pubrel, pubcomp
    case subscribe, suback, unsubscribe, unsuback
    case pingreq, pingresp, disconnect

    /// The lower half of the first byte, as a packet of this type must carry it [MQTT-2.2.2-1];
    /// `nil` for PUBLISH, whose flags vary.
    public var requiredFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        case .connect, .connack, .puback, .pubrec, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect:
            0
        }
    }

    /// The first byte of every packet of this type; for PUBLISH, that of QoS 0 without DUP and
    /// RETAIN.
    public var firstByte: UInt8 { rawValue << 4 | (requiredFlags ?? 0) }
}

/// Quality of service: a message arrives at most once, at least once, or exactly once.
public enum QoS: UInt8, Hashable, Sendable, CaseIterable, Comparable, BitwiseCopyable {
    case atMostOnce = 0
    case atLeastOnce = 1
    case exactlyOnce = 2

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Names one exchange between sender and receiver, such as PUBLISH and its PUBACK. Never 0
/// [MQTT-2.3.1-1].
public struct PacketIdentifier: Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt16

    public init?(_ rawValue: UInt16) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }

    /// The identifier of the message at a queue position: 1, 2, … 65,535, 1, …
    ///
    /// Positions less than 65,535 apart never share an identifier. A position keeps its identifier
    /// across reconnects and restarts [MQTT-4.4.0-1], although no identifier is stored.
    public init(position: UInt64) {
        rawValue = UInt16(truncatingIfNeeded: position % 65_535 + 1)
    }
}
