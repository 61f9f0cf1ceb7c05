import MQTTCodec

/// A well-formed packet that is not allowed in the connection's state. The broker closes the
/// connection [MQTT-4.8.0-1].
public enum ProtocolViolation: Error, Hashable, Sendable, BitwiseCopyable {
    case firstPacketNotConnect
    case secondConnect
    case packetOnlyServersSend
    /// A client answers a PUBLISH or PUBREL with another packet than is due.
    case wrongAcknowledgement(PacketType, awaited: PacketType)
    case malformed(MalformedPacket)

    /// The broken rule: the id of a normative statement, or a section of MQTT 3.1.1.
    public var statement: String {
        switch self {
        case .firstPacketNotConnect: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .packetOnlyServersSend: "section 2.2.1"
        case .wrongAcknowledgement(_, awaited: .puback): "MQTT-4.3.2-2"
        case .wrongAcknowledgement: "MQTT-4.3.3-2"
        case .malformed(let packet): packet.statement
        }
    }

    /// The fault in words, for a log line.
    public var explanation: String {
        switch self {
        case .firstPacketNotConnect: "the first packet was not CONNECT"
        case .secondConnect: "a second CONNECT"
        case .packetOnlyServersSend: "a packet that only a server sends"
        case .wrongAcknowledgement(let type, let awaited):
            "\("\(type)".uppercased()) where \("\(awaited)".uppercased()) is due"
        case .malformed(let packet): packet.explanation
        }
    }
}
