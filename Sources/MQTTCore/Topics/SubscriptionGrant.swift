import MQTTCodec

/// What a subscription was granted besides its filter: QoS, No Local, Retain As Published, and the
/// subscription identifier of MQTT 5.0; in 32 bits, as the store has it too.
///
/// Bits 0 to 3 are those of the options in SUBSCRIBE (section 3.8.3.1), bits 4 to 31 the identifier, 0
/// for none. So the grant of a 3.1.1 client is its QoS.
public struct SubscriptionGrant: Hashable, Sendable, BitwiseCopyable {
    private static var noLocalBit: UInt32 { 0x04 }
    private static var retainBit: UInt32 { 0x08 }
    private static var identifierShift: UInt32 { 4 }

    public let rawValue: UInt32

    /// `nil` for bits that no grant has, which only damage makes.
    public init?(rawValue: UInt32) {
        guard QoS(rawValue: UInt8(rawValue & 3)) != nil else { return nil }
        self.rawValue = rawValue
    }

    public init(
        _ qos: QoS, noLocal: Bool = false, retainAsPublished: Bool = false,
        identifier: SubscriptionIdentifier? = nil
    ) {
        rawValue =
            UInt32(qos.rawValue) | (noLocal ? Self.noLocalBit : 0)
            | (retainAsPublished ? Self.retainBit : 0)
            | (identifier?.rawValue ?? 0) << Self.identifierShift
    }

    @inline(__always)
    public var qos: QoS { QoS(rawValue: UInt8(truncatingIfNeeded: rawValue & 3)) ?? .exactlyOnce }
    /// True if the client's own messages do not come back to it.
    public var noLocal: Bool { rawValue & Self.noLocalBit != 0 }
    /// True if messages keep the RETAIN flag with which they were published.
    public var retainAsPublished: Bool { rawValue & Self.retainBit != 0 }
    public var identifier: SubscriptionIdentifier? {
        SubscriptionIdentifier(rawValue >> Self.identifierShift)
    }
    /// True if it says more than a QoS.
    public var hasOptions: Bool { rawValue > 3 }
}
