/// One property with its value (MQTT 5.0, section 2.2.2.2). Strings and data are ranges of the
/// bytes that it was decoded from.
public enum Property: Hashable, Sendable, BitwiseCopyable {
    case payloadFormatIndicator(PayloadFormat)
    /// Seconds.
    case messageExpiryInterval(UInt32)
    case contentType(ByteRange)
    /// Checked as a topic name.
    case responseTopic(ByteRange)
    case correlationData(ByteRange)
    case subscriptionIdentifier(SubscriptionIdentifier)
    /// Seconds; the largest number means that the session never ends.
    case sessionExpiryInterval(UInt32)
    case assignedClientIdentifier(ByteRange)
    /// Seconds; 0 turns the check off.
    case serverKeepAlive(UInt16)
    case authenticationMethod(ByteRange)
    case authenticationData(ByteRange)
    case requestProblemInformation(Bool)
    /// Seconds.
    case willDelayInterval(UInt32)
    case requestResponseInformation(Bool)
    case responseInformation(ByteRange)
    case serverReference(ByteRange)
    case reasonString(ByteRange)
    /// Never 0.
    case receiveMaximum(UInt16)
    case topicAliasMaximum(UInt16)
    case topicAlias(TopicAlias)
    /// Never QoS 2, which is what the property's absence means.
    case maximumQoS(QoS)
    case retainAvailable(Bool)
    case userProperty(UserProperty)
    /// Bytes of a whole packet; never 0.
    case maximumPacketSize(UInt32)
    case wildcardSubscriptionAvailable(Bool)
    case subscriptionIdentifiersAvailable(Bool)
    case sharedSubscriptionAvailable(Bool)

    public var identifier: PropertyIdentifier {
        switch self {
        case .payloadFormatIndicator: .payloadFormatIndicator
        case .messageExpiryInterval: .messageExpiryInterval
        case .contentType: .contentType
        case .responseTopic: .responseTopic
        case .correlationData: .correlationData
        case .subscriptionIdentifier: .subscriptionIdentifier
        case .sessionExpiryInterval: .sessionExpiryInterval
        case .assignedClientIdentifier: .assignedClientIdentifier
        case .serverKeepAlive: .serverKeepAlive
        case .authenticationMethod: .authenticationMethod
        case .authenticationData: .authenticationData
        case .requestProblemInformation: .requestProblemInformation
        case .willDelayInterval: .willDelayInterval
        case .requestResponseInformation: .requestResponseInformation
        case .responseInformation: .responseInformation
        case .serverReference: .serverReference
        case .reasonString: .reasonString
        case .receiveMaximum: .receiveMaximum
        case .topicAliasMaximum: .topicAliasMaximum
        case .topicAlias: .topicAlias
        case .maximumQoS: .maximumQoS
        case .retainAvailable: .retainAvailable
        case .userProperty: .userProperty
        case .maximumPacketSize: .maximumPacketSize
        case .wildcardSubscriptionAvailable: .wildcardSubscriptionAvailable
        case .subscriptionIdentifiersAvailable: .subscriptionIdentifiersAvailable
        case .sharedSubscriptionAvailable: .sharedSubscriptionAvailable
        }
    }
}

/// What a publisher says of its payload (section 3.3.2.3.2).
public enum PayloadFormat: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case unspecified = 0
    case utf8 = 1

    /// True if a payload is what the publisher says of it.
    ///
    /// Nothing in this module asks: checking is the receiver's choice. Unlike a string, a payload
    /// may hold U+0000.
    public func fits(_ bytes: RawSpan, _ payload: ByteRange) -> Bool {
        guard self == .utf8 else { return true }
        var offset = payload.start
        while offset < payload.end {
            if offset + 8 <= payload.end,
                bytes.word(at: offset) & TextValidation.highBits == 0
            {
                offset += 8
            } else if bytes.byte(at: offset) < 0x80 {
                offset += 1
            } else {
                guard
                    let next = try? TextValidation.afterCharacter(
                        bytes, at: offset, end: payload.end)
                else { return false }
                offset = next
            }
        }
        return true
    }
}

/// A number that stands for a topic name on one connection, in one direction. Never 0
/// [MQTT-3.3.2-8].
public struct TopicAlias: Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt16

    public init?(_ rawValue: UInt16) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }
}

/// A number that a client gives its subscription: 1 to 268,435,455 (section 3.8.2.1.2).
public struct SubscriptionIdentifier: Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt32

    public init?(_ rawValue: UInt32) {
        guard rawValue != 0, rawValue <= VariableByteInteger.maximumValue else { return nil }
        self.rawValue = rawValue
    }
}

/// A name and a value, both UTF-8, whose meaning is the application's. A name may come repeatedly.
public struct UserProperty: Hashable, Sendable, BitwiseCopyable {
    public var name: ByteRange
    public var value: ByteRange

    public init(name: ByteRange, value: ByteRange) {
        self.name = name
        self.value = value
    }
}
