/// CONNACK of MQTT 5.0: the broker's answer to CONNECT (section 3.2).
public struct Connack5: Hashable, Sendable {
    /// True only with ``ReasonCode/success`` [MQTT-3.2.2-6].
    public let sessionPresent: Bool
    public let code: ReasonCode
    public let values: ConnackProperties
    /// All properties, with those that ``values`` has.
    public let properties: Properties

    /// A CONNACK that accepts; `values` say nothing to an encoder, which writes `properties`.
    public static func accepted(
        sessionPresent: Bool, properties: Properties = .none
    ) -> Connack5 {
        Connack5(
            sessionPresent: sessionPresent, code: .success, values: ConnackProperties(),
            properties: properties)
    }

    /// A CONNACK that refuses with a code of its table.
    public static func refused(
        _ code: ReasonCode, properties: Properties = .none
    ) -> Connack5 {
        precondition(
            code.isFailure && code.isAllowed(in: .connack, from: .server),
            "\(code) refuses no CONNECT")
        return Connack5(
            sessionPresent: false, code: code, values: ConnackProperties(), properties: properties)
    }

    private init(
        sessionPresent: Bool, code: ReasonCode, values: ConnackProperties, properties: Properties
    ) {
        self.sessionPresent = sessionPresent
        self.code = code
        self.values = values
        self.properties = properties
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(PacketFault) -> Connack5 {
        var reader = FieldReader5(body)
        let flags = try reader.byte(bytes)
        guard flags & 0xFE == 0 else { throw .connackFlags }  // [MQTT-3.2.2-1]
        let code = try ReasonCode.decode(try reader.byte(bytes), in: .connack, from: .server)
        // [MQTT-3.2.2-6]
        guard flags == 0 || code == .success else { throw .sessionPresentWithFailure }
        var values = ConnackProperties()
        let properties = try Properties.decode(&reader, bytes, in: .connack) { values.take($0) }
        guard values.authenticationData == nil || values.authenticationMethod != nil else {
            throw .authenticationDataWithoutMethod
        }
        try reader.finish()
        return Connack5(
            sessionPresent: flags == 1, code: code, values: values, properties: properties)
    }
}

/// The properties of CONNACK except user properties, with the values that their absence means
/// (section 3.2.2.3).
public struct ConnackProperties: Hashable, Sendable, BitwiseCopyable {
    /// Seconds; `nil` when the server takes the client's.
    public private(set) var sessionExpiryInterval: UInt32?
    /// PUBLISH packets of QoS 1 and 2 that the server handles at a time; never 0.
    public private(set) var receiveMaximum: UInt16 = .max
    public private(set) var maximumQoS = QoS.exactlyOnce
    public private(set) var retainAvailable = true
    /// Bytes of a whole packet; never 0. `nil` when the server sets no limit.
    public private(set) var maximumPacketSize: UInt32?
    /// The name that the server gave a client which named itself not.
    public private(set) var assignedClientIdentifier: ByteRange?
    public private(set) var topicAliasMaximum: UInt16 = 0
    public private(set) var reasonString: ByteRange?
    public private(set) var wildcardSubscriptionAvailable = true
    public private(set) var subscriptionIdentifiersAvailable = true
    public private(set) var sharedSubscriptionAvailable = true
    /// Seconds; `nil` when the server takes the client's.
    public private(set) var serverKeepAlive: UInt16?
    public private(set) var responseInformation: ByteRange?
    public private(set) var serverReference: ByteRange?
    public private(set) var authenticationMethod: ByteRange?
    public private(set) var authenticationData: ByteRange?

    public init() {}

    mutating func take(_ property: Property) {
        switch property {
        case .sessionExpiryInterval(let seconds): sessionExpiryInterval = seconds
        case .receiveMaximum(let count): receiveMaximum = count
        case .maximumQoS(let qos): maximumQoS = qos
        case .retainAvailable(let isAvailable): retainAvailable = isAvailable
        case .maximumPacketSize(let count): maximumPacketSize = count
        case .assignedClientIdentifier(let name): assignedClientIdentifier = name
        case .topicAliasMaximum(let count): topicAliasMaximum = count
        case .reasonString(let text): reasonString = text
        case .wildcardSubscriptionAvailable(let isAvailable):
            wildcardSubscriptionAvailable = isAvailable
        case .subscriptionIdentifiersAvailable(let isAvailable):
            subscriptionIdentifiersAvailable = isAvailable
        case .sharedSubscriptionAvailable(let isAvailable):
            sharedSubscriptionAvailable = isAvailable
        case .serverKeepAlive(let seconds): serverKeepAlive = seconds
        case .responseInformation(let text): responseInformation = text
        case .serverReference(let text): serverReference = text
        case .authenticationMethod(let name): authenticationMethod = name
        case .authenticationData(let data): authenticationData = data
        default: break
        }
    }
}
