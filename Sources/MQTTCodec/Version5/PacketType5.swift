/// The side of a connection that sent a packet. Packet types, properties and reason codes of
/// MQTT 5.0 depend on it.
public enum PacketSender: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case client, server
}

/// The kind of an MQTT 5.0 packet: the upper half of its first byte (section 2.1.2).
///
/// A type of its own beside ``PacketType``, to which AUTH is a reserved value.
public enum PacketType5: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case connect = 1
    case connack, publish, puback, pubrec, pubrel, pubcomp
    case subscribe, suback, unsubscribe, unsuback
    case pingreq, pingresp, disconnect, auth

    /// The lower half of the first byte, as a packet of this type must carry it [MQTT-2.1.3-1];
    /// `nil` for PUBLISH, whose flags vary.
    public var requiredFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        case .connect, .connack, .puback, .pubrec, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect, .auth:
            0
        }
    }

    /// The first byte of every packet of this type; for PUBLISH, that of QoS 0 without DUP and
    /// RETAIN.
    public var firstByte: UInt8 { rawValue << 4 | (requiredFlags ?? 0) }

    /// True if that side sends packets of this type (table 2-1).
    public func isSent(by sender: PacketSender) -> Bool {
        switch self {
        case .connect, .subscribe, .unsubscribe, .pingreq: sender == .client
        case .connack, .suback, .unsuback, .pingresp: sender == .server
        case .publish, .puback, .pubrec, .pubrel, .pubcomp, .disconnect, .auth: true
        }
    }
}
