import MQTTCodec

/// A well-formed packet that is not allowed in the connection's state. The broker closes the
/// connection [MQTT-4.8.0-1].
public enum ProtocolViolation: Error, Hashable, Sendable, BitwiseCopyable {
    case firstPacketNotConnect
    case secondConnect
    case packetOnlyServersSend
    case malformed(MalformedPacket)

    /// The broken rule: the id of a normative statement, or a section of MQTT 3.1.1.
    public var statement: String {
        switch self {
        case .firstPacketNotConnect: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .packetOnlyServersSend: "section 2.2.1"
        case .malformed(let packet): packet.statement
        }
    }

    /// The fault in words, for a log line.
    public var explanation: String {
        switch self {
        case .firstPacketNotConnect: "the first packet was not CONNECT"
        case .secondConnect: "a second CONNECT"
        case .packetOnlyServersSend: "a packet that only a server sends"
        case .malformed(let packet): packet.explanation
        }
    }
}
