/// A packet breaks a rule of MQTT's encoding; each case is one rule.
///
/// The broker closes the connection that the packet came on [MQTT-4.8.0-1].
public enum MalformedPacket: Error, Hashable, Sendable, BitwiseCopyable {
    case reservedPacketType
    case reservedFlags
    case remainingLengthTooLong
    /// The packet is larger than `limits.max_packet`.
    case packetTooLarge
    /// A field reaches beyond the end of its packet.
    case truncated
    /// Bytes follow the last field.
    case trailingBytes
    case illFormedString
    case nullCharacter
    case zeroPacketIdentifier
    case protocolName
    /// The broker answers with return code 0x01 before it closes.
    case unsupportedProtocolLevel(UInt8)
    case connectReservedFlag
    case willFlagsWithoutWill
    case willQoS
    case passwordWithoutUserName
    case publishQoS
    case duplicateAtMostOnce
    case emptyTopic
    case wildcardInTopicName
    case misplacedMultiLevelWildcard
    case misplacedSingleLevelWildcard
    case noTopicFilter
    case noTopicFilterToRemove
    case requestedQoS
    case returnCode

    /// The rule that is broken: an id of a normative statement, a section of MQTT 3.1.1, or the
    /// setting that limits the packet.
    public var statement: String {
        switch self {
        case .reservedPacketType: "section 2.2.1"
        case .reservedFlags: "MQTT-2.2.2-2"
        case .remainingLengthTooLong: "section 2.2.3"
        case .packetTooLarge: "limits.max_packet"
        case .truncated: "section 2.2.3"
        case .trailingBytes: "section 2.2.3"
        case .illFormedString: "MQTT-1.5.3-1"
        case .nullCharacter: "MQTT-1.5.3-2"
        case .zeroPacketIdentifier: "MQTT-2.3.1-1"
        case .protocolName: "MQTT-3.1.2-1"
        case .unsupportedProtocolLevel: "MQTT-3.1.2-2"
        case .connectReservedFlag: "MQTT-3.1.2-3"
        case .willFlagsWithoutWill: "MQTT-3.1.2-11"
        case .willQoS: "MQTT-3.1.2-14"
        case .passwordWithoutUserName: "MQTT-3.1.2-22"
        case .publishQoS: "MQTT-3.3.1-4"
        case .duplicateAtMostOnce: "MQTT-3.3.1-2"
        case .emptyTopic: "MQTT-4.7.3-1"
        case .wildcardInTopicName: "MQTT-3.3.2-2"
        case .misplacedMultiLevelWildcard: "MQTT-4.7.1-2"
        case .misplacedSingleLevelWildcard: "MQTT-4.7.1-3"
        case .noTopicFilter: "MQTT-3.8.3-3"
        case .noTopicFilterToRemove: "MQTT-3.10.3-2"
        case .requestedQoS: "MQTT-3.8.3-4"
        case .returnCode: "MQTT-3.9.3-2"
        }
    }

    /// The fault in words, for a log line.
    public var explanation: String {
        switch self {
        case .reservedPacketType: "packet type 0 or 15"
        case .reservedFlags: "fixed header flags that its packet type does not allow"
        case .remainingLengthTooLong: "a remaining length of more than four bytes"
        case .packetTooLarge: "a packet larger than the limit"
        case .truncated: "a field that reaches beyond the end of its packet"
        case .trailingBytes: "bytes after the last field"
        case .illFormedString: "a string that is not UTF-8"
        case .nullCharacter: "U+0000 in a string"
        case .zeroPacketIdentifier: "packet identifier 0"
        case .protocolName: "an unknown protocol name"
        case .unsupportedProtocolLevel(let level): "protocol level \(level)"
        case .connectReservedFlag: "the reserved connect flag is set"
        case .willFlagsWithoutWill: "will QoS or will retain without a will"
        case .willQoS: "will QoS 3"
        case .passwordWithoutUserName: "a password without a user name"
        case .publishQoS: "QoS 3"
        case .duplicateAtMostOnce: "DUP on a QoS 0 PUBLISH"
        case .emptyTopic: "an empty topic"
        case .wildcardInTopicName: "a wildcard in a topic name"
        case .misplacedMultiLevelWildcard: "a # that is not the whole last level"
        case .misplacedSingleLevelWildcard: "a + that is not a whole level"
        case .noTopicFilter: "a SUBSCRIBE without a topic filter"
        case .noTopicFilterToRemove: "an UNSUBSCRIBE without a topic filter"
        case .requestedQoS: "reserved bits or QoS 3 in a subscription request"
        case .returnCode: "an undefined return code"
        }
    }
}
