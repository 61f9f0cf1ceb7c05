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
    /// A packet of MQTT 5.0 breaks a rule of encoding.
    case fault(PacketFault)
    /// A topic alias above what CONNACK announced.
    case topicAlias
    /// A PUBLISH with an alias alone, which stands for no topic.
    case unknownTopicAlias
    /// AUTH of a client whose CONNECT had no authentication method.
    case authWithoutMethod
    /// DISCONNECT asks for a session that CONNECT wanted to end with the connection.
    case raisedSessionExpiry

    /// The broken rule: the id of a normative statement, or a section, of MQTT 3.1.1 or 5.0.
    public var statement: String {
        switch self {
        case .firstPacketNotConnect: "MQTT-3.1.0-1"
        case .secondConnect: "MQTT-3.1.0-2"
        case .packetOnlyServersSend: "section 2.2.1"
        case .wrongAcknowledgement(_, awaited: .puback): "MQTT-4.3.2-2"
        case .wrongAcknowledgement: "MQTT-4.3.3-2"
        case .malformed(let packet): packet.statement
        case .fault(let fault): fault.statement
        case .topicAlias: "MQTT-3.3.2-9"
        case .unknownTopicAlias: "section 3.3.2.3.4"
        case .authWithoutMethod: "MQTT-4.12.0-7"
        case .raisedSessionExpiry: "section 3.14.2.2.2"
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
        case .fault(let fault): fault.explanation
        case .topicAlias: "a topic alias above the broker's maximum of \(TopicAliases.most)"
        case .unknownTopicAlias: "a topic alias that stands for no topic"
        case .authWithoutMethod: "AUTH, although CONNECT had no authentication method"
        case .raisedSessionExpiry:
            "a session expiry in DISCONNECT, although CONNECT had none"
        }
    }
}
