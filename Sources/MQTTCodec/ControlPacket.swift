/// Any packet of MQTT 3.1.1, decoded. Its fields are ranges of the bytes that it was decoded from.
public enum ControlPacket: Hashable, Sendable {
    case connect(Connect)
    case connack(Connack)
    case publish(Publish)
    case puback(PacketIdentifier)
    case pubrec(PacketIdentifier)
    case pubrel(PacketIdentifier)
    case pubcomp(PacketIdentifier)
    case subscribe(Subscribe)
    case suback(Suback)
    case unsubscribe(Unsubscribe)
    case unsuback(PacketIdentifier)
    case pingreq
    case pingresp
    case disconnect

    public var type: PacketType {
        switch self {
        case .connect: .connect
        case .connack: .connack
        case .publish: .publish
        case .puback: .puback
        case .pubrec: .pubrec
        case .pubrel: .pubrel
        case .pubcomp: .pubcomp
        case .subscribe: .subscribe
        case .suback: .suback
        case .unsubscribe: .unsubscribe
        case .unsuback: .unsuback
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        }
    }
}
