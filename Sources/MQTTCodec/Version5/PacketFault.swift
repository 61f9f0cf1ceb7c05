/// An MQTT 5.0 packet breaks a rule of encoding; each case is one rule.
///
/// The receiver ends the connection [MQTT-4.13.1-1]: a server may say ``reasonCode`` in CONNACK
/// when the packet is CONNECT, and either side in DISCONNECT when it is another. A topic filter
/// that is wrong by itself ends nothing: SUBACK or UNSUBACK says so.
public enum PacketFault: Error, Hashable, Sendable, BitwiseCopyable {
    case reservedPacketType
    /// A packet that only the receiver's side sends.
    case misdirectedPacket(PacketType5)
    case reservedFlags(PacketType5)
    case variableByteIntegerTooLong
    case variableByteIntegerNotMinimal
    /// The packet is larger than the receiver allows.
    case packetTooLarge(from: PacketSender)
    /// A field reaches beyond the end of its packet.
    case truncated
    /// Bytes follow the last field.
    case trailingBytes
    case illFormedString
    case nullCharacter
    case illFormedStringPair
    case zeroPacketIdentifier

    // Properties.
    case propertyLength
    case unknownProperty
    /// A known property in a packet that may not have it.
    case misplacedProperty(PropertyIdentifier)
    /// A value that reaches beyond the end of the properties.
    case truncatedProperty(PropertyIdentifier)
    case repeatedProperty(PropertyIdentifier)
    /// A number that the property may not have.
    case propertyValue(PropertyIdentifier)
    case zeroTopicAlias
    case subscriptionIdentifierOfClient
    case sessionExpiryOfServer
    case emptyResponseTopic
    case wildcardInResponseTopic
    case authenticationDataWithoutMethod
    case authWithoutMethod

    // CONNECT and CONNACK.
    case protocolName
    case unsupportedProtocolLevel(UInt8)
    case connectReservedFlag
    case willQoSWithoutWill
    case willRetainWithoutWill
    case willQoS
    case connackFlags
    case sessionPresentWithFailure
    case reasonCode(PacketType5)

    // PUBLISH.
    case publishQoS
    case duplicateAtMostOnce
    /// Neither topic name nor topic alias.
    case missingTopic
    /// A will topic of no character.
    case emptyTopicName
    case wildcardInTopicName

    // SUBSCRIBE and UNSUBSCRIBE.
    case noTopicFilter
    case noTopicFilterToRemove
    case subscriptionOptions
    case requestedQoS
    case retainHandling
    case noLocalOnSharedSubscription
    case emptyTopicFilter
    case misplacedMultiLevelWildcard
    case misplacedSingleLevelWildcard

    /// What CONNACK, DISCONNECT, SUBACK or UNSUBACK says of it.
    ///
    /// The standard leaves some to the receiver: 0x82 for packet identifier 0 and reason codes
    /// outside their table, 0x90 for wildcards in a topic name, 0x8F for a wrong topic filter.
    public var reasonCode: ReasonCode {
        switch self {
        case .reservedPacketType, .reservedFlags, .variableByteIntegerTooLong,
            .variableByteIntegerNotMinimal, .truncated, .trailingBytes, .illFormedString,
            .nullCharacter, .illFormedStringPair, .propertyLength, .unknownProperty,
            .misplacedProperty, .truncatedProperty, .connectReservedFlag, .willQoSWithoutWill,
            .willRetainWithoutWill, .willQoS, .connackFlags, .publishQoS, .duplicateAtMostOnce,
            .subscriptionOptions:
            .malformedPacket
        case .misdirectedPacket, .zeroPacketIdentifier, .repeatedProperty, .propertyValue,
            .subscriptionIdentifierOfClient, .sessionExpiryOfServer, .emptyResponseTopic,
            .wildcardInResponseTopic, .authenticationDataWithoutMethod, .authWithoutMethod,
            .sessionPresentWithFailure, .reasonCode, .missingTopic, .noTopicFilter,
            .noTopicFilterToRemove, .requestedQoS, .retainHandling, .noLocalOnSharedSubscription:
            .protocolError
        case .packetTooLarge: .packetTooLarge
        case .zeroTopicAlias: .topicAliasInvalid
        case .protocolName, .unsupportedProtocolLevel: .unsupportedProtocolVersion
        case .emptyTopicName, .wildcardInTopicName: .topicNameInvalid
        case .emptyTopicFilter, .misplacedMultiLevelWildcard, .misplacedSingleLevelWildcard:
            .topicFilterInvalid
        }
    }

    /// Checks a string: well-formed UTF-8 [MQTT-1.5.4-1] without U+0000 [MQTT-1.5.4-2]; U+FEFF is
    /// a character like any other [MQTT-1.5.4-3].
    static func checkString(_ bytes: RawSpan, _ range: ByteRange) throws(PacketFault) {
        do throws(MalformedPacket) {
            try TextValidation.checkString(bytes, range)
        } catch {
            throw PacketFault(text: error)
        }
    }

    /// The rule of 5.0 for what ``TextValidation`` found.
    init(text error: MalformedPacket) {
        switch error {
        case .nullCharacter: self = .nullCharacter
        case .emptyTopic: self = .emptyTopicName
        case .wildcardInTopicName: self = .wildcardInTopicName
        case .misplacedMultiLevelWildcard: self = .misplacedMultiLevelWildcard
        case .misplacedSingleLevelWildcard: self = .misplacedSingleLevelWildcard
        case .illFormedString, .reservedPacketType, .reservedFlags, .remainingLengthTooLong,
            .packetTooLarge, .truncated, .trailingBytes, .zeroPacketIdentifier, .protocolName,
            .unsupportedProtocolLevel, .connectReservedFlag, .willFlagsWithoutWill, .willQoS,
            .passwordWithoutUserName, .publishQoS, .duplicateAtMostOnce, .noTopicFilter,
            .noTopicFilterToRemove, .requestedQoS, .returnCode:
            self = .illFormedString
        }
    }
}
