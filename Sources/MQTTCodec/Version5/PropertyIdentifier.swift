/// The name of a property on the wire (MQTT 5.0, table 2-4).
///
/// The standard encodes it as a variable byte integer; all that are defined take one byte.
public enum PropertyIdentifier: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case payloadFormatIndicator = 0x01
    case messageExpiryInterval = 0x02
    case contentType = 0x03
    case responseTopic = 0x08
    case correlationData = 0x09
    case subscriptionIdentifier = 0x0B
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case requestProblemInformation = 0x17
    case willDelayInterval = 0x18
    case requestResponseInformation = 0x19
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case topicAlias = 0x23
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifiersAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A
}

/// A set of property identifiers, a bit for each.
public struct PropertySet: OptionSet, Hashable, Sendable, BitwiseCopyable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public init(_ identifier: PropertyIdentifier) { rawValue = 1 << identifier.rawValue }

    init(_ identifiers: PropertyIdentifier...) {
        rawValue = identifiers.reduce(0) { $0 | 1 << $1.rawValue }
    }

    public func contains(_ identifier: PropertyIdentifier) -> Bool {
        rawValue >> identifier.rawValue & 1 == 1
    }

    /// What a server passes on with a message, unchanged and in order [MQTT-3.3.2-4]
    /// [MQTT-3.3.2-15] to [MQTT-3.3.2-18] [MQTT-3.3.2-20].
    public static let forwarded = PropertySet(
        .payloadFormatIndicator, .contentType, .responseTopic, .correlationData, .userProperty)
}

/// A place where properties stand: it says which are allowed.
public enum PropertyPlace: Hashable, Sendable, BitwiseCopyable {
    case connect, will, connack
    /// Only a server's PUBLISH may have subscription identifiers.
    case publish(PacketSender)
    /// PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK.
    case acknowledgement
    case subscribe, unsubscribe
    /// Only a client's DISCONNECT may have a session expiry interval, and only a server's a server
    /// reference.
    case disconnect(PacketSender)
    case auth
    /// What ``ForwardedProperties`` keeps of a PUBLISH.
    case storedMessage

    public var allowed: PropertySet {
        switch self {
        case .connect: Self.ofConnect
        case .will: Self.ofWill
        case .connack: Self.ofConnack
        case .publish(.client): Self.ofClientPublish
        case .publish(.server): Self.ofServerPublish
        case .acknowledgement: Self.ofAcknowledgement
        case .subscribe: Self.ofSubscribe
        case .unsubscribe: Self.ofUnsubscribe
        case .disconnect(.client): Self.ofClientDisconnect
        case .disconnect(.server): Self.ofServerDisconnect
        case .auth: Self.ofAuth
        case .storedMessage: .forwarded
        }
    }

    /// The properties that may stand here more than once.
    var repeatable: PropertySet {
        self == .publish(.server)
            ? [PropertySet(.userProperty), PropertySet(.subscriptionIdentifier)]
            : PropertySet(.userProperty)
    }

    /// The rule that a known property breaks by standing here.
    func fault(of identifier: PropertyIdentifier) -> PacketFault {
        switch (self, identifier) {
        case (.publish(.client), .subscriptionIdentifier): .subscriptionIdentifierOfClient
        case (.disconnect(.server), .sessionExpiryInterval): .sessionExpiryOfServer
        default: .misplacedProperty(identifier)
        }
    }

    private static let ofConnect = PropertySet(
        .sessionExpiryInterval, .authenticationMethod, .authenticationData,
        .requestProblemInformation, .requestResponseInformation, .receiveMaximum,
        .topicAliasMaximum, .userProperty, .maximumPacketSize)
    private static let ofWill = PropertySet(
        .payloadFormatIndicator, .messageExpiryInterval, .contentType, .responseTopic,
        .correlationData, .willDelayInterval, .userProperty)
    private static let ofConnack = PropertySet(
        .sessionExpiryInterval, .assignedClientIdentifier, .serverKeepAlive,
        .authenticationMethod, .authenticationData, .responseInformation, .serverReference,
        .reasonString, .receiveMaximum, .topicAliasMaximum, .maximumQoS, .retainAvailable,
        .userProperty, .maximumPacketSize, .wildcardSubscriptionAvailable,
        .subscriptionIdentifiersAvailable, .sharedSubscriptionAvailable)
    private static let ofClientPublish = PropertySet(
        .payloadFormatIndicator, .messageExpiryInterval, .contentType, .responseTopic,
        .correlationData, .topicAlias, .userProperty)
    private static let ofServerPublish = ofClientPublish.union(
        PropertySet(.subscriptionIdentifier))
    private static let ofAcknowledgement = PropertySet(.reasonString, .userProperty)
    private static let ofSubscribe = PropertySet(.subscriptionIdentifier, .userProperty)
    private static let ofUnsubscribe = PropertySet(.userProperty)
    private static let ofClientDisconnect = PropertySet(
        .sessionExpiryInterval, .reasonString, .userProperty)
    private static let ofServerDisconnect = PropertySet(
        .serverReference, .reasonString, .userProperty)
    private static let ofAuth = PropertySet(
        .authenticationMethod, .authenticationData, .reasonString, .userProperty)
}
