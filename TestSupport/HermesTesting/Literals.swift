import MQTTCodec

/// Lets a test write `.puback(10)`; 0 is no identifier and traps.
extension PacketIdentifier: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: UInt16) {
        guard let identifier = PacketIdentifier(value) else {
            preconditionFailure("0 is no packet identifier")
        }
        self = identifier
    }
}
