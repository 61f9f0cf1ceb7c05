/// Any packet of MQTT 5.0, decoded. Its fields are ranges of the bytes that it was decoded from.
///
/// CONNECT and CONNACK come once a connection and are several times as large as the others; they
/// alone are allocated, so that the others are handed on without copying so much.
public enum ControlPacket5: Hashable, Sendable {
    indirect case connect(Connect5)
    indirect case connack(Connack5)
    case publish(Publish5)
    case puback(Acknowledgement5)
    case pubrec(Acknowledgement5)
    case pubrel(Acknowledgement5)
    case pubcomp(Acknowledgement5)
    case subscribe(Subscribe5)
    case suback(FilterAnswers5)
    case unsubscribe(Unsubscribe5)
    case unsuback(FilterAnswers5)
    case pingreq
    case pingresp
    case disconnect(Disconnect5)
    case auth(Auth5)

    public var type: PacketType5 {
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
        case .auth: .auth
        }
    }
}
