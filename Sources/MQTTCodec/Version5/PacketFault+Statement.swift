extension PacketFault {
    /// The rule that is broken: an id of a normative statement of MQTT 5.0, or a section of it
    /// where the rule has no id.
    public var statement: String {
        switch self {
        case .reservedPacketType, .misdirectedPacket: "section 2.1.2"
        case .reservedFlags(let type): Self.flagStatement(type)
        case .variableByteIntegerTooLong: "section 1.5.5"
        case .variableByteIntegerNotMinimal: "MQTT-1.5.5-1"
        case .packetTooLarge(.client): "MQTT-3.2.2-15"
        case .packetTooLarge(.server): "MQTT-3.1.2-24"
        case .truncated, .trailingBytes: "section 2.1.4"
        case .illFormedString: "MQTT-1.5.4-1"
        case .nullCharacter: "MQTT-1.5.4-2"
        case .illFormedStringPair: "MQTT-1.5.7-1"
        case .zeroPacketIdentifier: "MQTT-2.2.1-3"
        case .propertyLength: "section 2.2.2.1"
        case .unknownProperty, .misplacedProperty, .truncatedProperty, .repeatedProperty:
            "section 2.2.2.2"
        case .propertyValue(let identifier): identifier.section
        case .zeroTopicAlias: "MQTT-3.3.2-8"
        case .subscriptionIdentifierOfClient: "MQTT-3.3.4-6"
        case .sessionExpiryOfServer: "MQTT-3.14.2-2"
        case .emptyResponseTopic, .emptyTopicName, .emptyTopicFilter: "MQTT-4.7.3-1"
        case .wildcardInResponseTopic: "MQTT-3.3.2-14"
        case .authenticationDataWithoutMethod: "section 3.1.2.11.10"
        case .authWithoutMethod: "section 3.15.2.2.2"
        case .protocolName: "MQTT-3.1.2-1"
        case .unsupportedProtocolLevel: "MQTT-3.1.2-2"
        case .connectReservedFlag: "MQTT-3.1.2-3"
        case .willQoSWithoutWill: "MQTT-3.1.2-11"
        case .willRetainWithoutWill: "MQTT-3.1.2-13"
        case .willQoS: "MQTT-3.1.2-12"
        case .connackFlags: "MQTT-3.2.2-1"
        case .sessionPresentWithFailure: "MQTT-3.2.2-6"
        case .reasonCode(let type): Self.codeStatement(type)
        case .publishQoS: "MQTT-3.3.1-4"
        case .duplicateAtMostOnce: "MQTT-3.3.1-2"
        case .missingTopic: "section 3.3.2.1"
        case .wildcardInTopicName: "MQTT-3.3.2-2"
        case .noTopicFilter: "MQTT-3.8.3-2"
        case .noTopicFilterToRemove: "MQTT-3.10.3-2"
        case .subscriptionOptions: "MQTT-3.8.3-5"
        case .requestedQoS, .retainHandling: "section 3.8.3.1"
        case .noLocalOnSharedSubscription: "MQTT-3.8.3-4"
        case .misplacedMultiLevelWildcard: "MQTT-4.7.1-1"
        case .misplacedSingleLevelWildcard: "MQTT-4.7.1-2"
        }
    }

    private static func flagStatement(_ type: PacketType5) -> String {
        switch type {
        case .pubrel: "MQTT-3.6.1-1"
        case .subscribe: "MQTT-3.8.1-1"
        case .unsubscribe: "MQTT-3.10.1-1"
        case .disconnect: "MQTT-3.14.1-1"
        case .auth: "MQTT-3.15.1-1"
        case .connect, .connack, .publish, .puback, .pubrec, .pubcomp, .suback, .unsuback,
            .pingreq, .pingresp:
            "MQTT-2.1.3-1"
        }
    }

    private static func codeStatement(_ type: PacketType5) -> String {
        switch type {
        case .connack: "MQTT-3.2.2-8"
        case .puback: "MQTT-3.4.2-1"
        case .pubrec: "MQTT-3.5.2-1"
        case .pubrel: "MQTT-3.6.2-1"
        case .pubcomp: "MQTT-3.7.2-1"
        case .suback: "MQTT-3.9.3-2"
        case .unsuback: "MQTT-3.11.3-2"
        case .disconnect: "MQTT-3.14.2-1"
        case .auth: "MQTT-3.15.2-1"
        case .connect, .publish, .subscribe, .unsubscribe, .pingreq, .pingresp: "section 2.4"
        }
    }

    /// The fault in words, for a log line.
    public var explanation: String {
        switch self {
        case .reservedPacketType: "packet type 0"
        case .misdirectedPacket(let type): "\(type.name), which only the other side sends"
        case .reservedFlags(let type): "fixed header flags that \(type.name) does not allow"
        case .variableByteIntegerTooLong: "a variable byte integer of more than four bytes"
        case .variableByteIntegerNotMinimal: "a variable byte integer longer than needed"
        case .packetTooLarge: "a packet larger than the limit"
        case .truncated: "a field that reaches beyond the end of its packet"
        case .trailingBytes: "bytes after the last field"
        case .illFormedString: "a string that is not UTF-8"
        case .nullCharacter: "U+0000 in a string"
        case .illFormedStringPair: "a string pair that is not UTF-8 or holds U+0000"
        case .zeroPacketIdentifier: "packet identifier 0"
        case .propertyLength: "properties that reach beyond the end of their packet"
        case .unknownProperty: "an unknown property"
        case .misplacedProperty(let identifier):
            "\(identifier.name) in a packet that may not have it"
        case .truncatedProperty(let identifier): "\(identifier.name) that is cut short"
        case .repeatedProperty(let identifier): "\(identifier.name) twice"
        case .propertyValue(let identifier): "\(identifier.name) with a value it may not have"
        case .zeroTopicAlias: "topic alias 0"
        case .subscriptionIdentifierOfClient: "a subscription identifier in a client's PUBLISH"
        case .sessionExpiryOfServer: "a session expiry interval in a server's DISCONNECT"
        case .emptyResponseTopic: "an empty response topic"
        case .wildcardInResponseTopic: "a wildcard in a response topic"
        case .authenticationDataWithoutMethod: "authentication data without a method"
        case .authWithoutMethod: "an AUTH without an authentication method"
        case .protocolName: "an unknown protocol name"
        case .unsupportedProtocolLevel(let level): "protocol level \(level)"
        case .connectReservedFlag: "the reserved connect flag is set"
        case .willQoSWithoutWill: "will QoS without a will"
        case .willRetainWithoutWill: "will retain without a will"
        case .willQoS: "will QoS 3"
        case .connackFlags: "reserved bits in the flags of a CONNACK"
        case .sessionPresentWithFailure: "session present in a CONNACK that refuses"
        case .reasonCode(let type): "a reason code that \(type.name) does not have"
        case .publishQoS: "QoS 3"
        case .duplicateAtMostOnce: "DUP on a QoS 0 PUBLISH"
        case .missingTopic: "a PUBLISH with neither topic nor topic alias"
        case .emptyTopicName: "an empty topic name"
        case .wildcardInTopicName: "a wildcard in a topic name"
        case .noTopicFilter: "a SUBSCRIBE without a topic filter"
        case .noTopicFilterToRemove: "an UNSUBSCRIBE without a topic filter"
        case .subscriptionOptions: "reserved bits in subscription options"
        case .requestedQoS: "QoS 3 in subscription options"
        case .retainHandling: "retain handling 3"
        case .noLocalOnSharedSubscription: "no local on a shared subscription"
        case .emptyTopicFilter: "an empty topic filter"
        case .misplacedMultiLevelWildcard: "a # that is not the whole last level"
        case .misplacedSingleLevelWildcard: "a + that is not a whole level"
        }
    }
}

extension PacketType5 {
    /// As the standard writes it.
    public var name: String {
        switch self {
        case .connect: "CONNECT"
        case .connack: "CONNACK"
        case .publish: "PUBLISH"
        case .puback: "PUBACK"
        case .pubrec: "PUBREC"
        case .pubrel: "PUBREL"
        case .pubcomp: "PUBCOMP"
        case .subscribe: "SUBSCRIBE"
        case .suback: "SUBACK"
        case .unsubscribe: "UNSUBSCRIBE"
        case .unsuback: "UNSUBACK"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect: "DISCONNECT"
        case .auth: "AUTH"
        }
    }
}

extension PropertyIdentifier {
    /// As the standard writes it, in small letters.
    public var name: String {
        switch self {
        case .payloadFormatIndicator: "payload format indicator"
        case .messageExpiryInterval: "message expiry interval"
        case .contentType: "content type"
        case .responseTopic: "response topic"
        case .correlationData: "correlation data"
        case .subscriptionIdentifier: "subscription identifier"
        case .sessionExpiryInterval: "session expiry interval"
        case .assignedClientIdentifier: "assigned client identifier"
        case .serverKeepAlive: "server keep alive"
        case .authenticationMethod: "authentication method"
        case .authenticationData: "authentication data"
        case .requestProblemInformation: "request problem information"
        case .willDelayInterval: "will delay interval"
        case .requestResponseInformation: "request response information"
        case .responseInformation: "response information"
        case .serverReference: "server reference"
        case .reasonString: "reason string"
        case .receiveMaximum: "receive maximum"
        case .topicAliasMaximum: "topic alias maximum"
        case .topicAlias: "topic alias"
        case .maximumQoS: "maximum QoS"
        case .retainAvailable: "retain available"
        case .userProperty: "user property"
        case .maximumPacketSize: "maximum packet size"
        case .wildcardSubscriptionAvailable: "wildcard subscription available"
        case .subscriptionIdentifiersAvailable: "subscription identifiers available"
        case .sharedSubscriptionAvailable: "shared subscription available"
        }
    }

    /// The section that says which values are allowed, for the properties of which it forbids one.
    var section: String {
        switch self {
        case .payloadFormatIndicator: "section 3.3.2.3.2"
        case .subscriptionIdentifier: "section 3.8.2.1.2"
        case .requestProblemInformation: "section 3.1.2.11.7"
        case .requestResponseInformation: "section 3.1.2.11.6"
        case .receiveMaximum: "section 3.1.2.11.3"
        case .maximumPacketSize: "section 3.1.2.11.4"
        case .maximumQoS: "section 3.2.2.3.4"
        case .retainAvailable: "section 3.2.2.3.5"
        case .wildcardSubscriptionAvailable: "section 3.2.2.3.11"
        case .subscriptionIdentifiersAvailable: "section 3.2.2.3.12"
        case .sharedSubscriptionAvailable: "section 3.2.2.3.13"
        case .messageExpiryInterval, .contentType, .responseTopic, .correlationData,
            .sessionExpiryInterval, .assignedClientIdentifier, .serverKeepAlive,
            .authenticationMethod, .authenticationData, .willDelayInterval,
            .responseInformation, .serverReference, .reasonString, .topicAliasMaximum,
            .topicAlias, .userProperty:
            "section 2.2.2.2"
        }
    }
}
