/// CONNECT of MQTT 5.0: opens a connection (section 3.1).
public struct Connect5: Hashable, Sendable {
    public struct Will: Hashable, Sendable {
        public var topic: TopicName
        public var message: ByteRange
        public var qos: QoS
        public var retain: Bool
        /// Seconds between the connection's end and the will's publication, unless the session
        /// ends first. Never part of the PUBLISH.
        public var delayInterval: UInt32
        /// Seconds; `nil` for a will that does not expire.
        public var messageExpiryInterval: UInt32?
        /// All properties of the will; ``ForwardedProperties`` takes those of its PUBLISH.
        public var properties: Properties

        public init(
            topic: TopicName, message: ByteRange, qos: QoS, retain: Bool, delayInterval: UInt32 = 0,
            messageExpiryInterval: UInt32? = nil, properties: Properties = .none
        ) {
            self.topic = topic
            self.message = message
            self.qos = qos
            self.retain = retain
            self.delayInterval = delayInterval
            self.messageExpiryInterval = messageExpiryInterval
            self.properties = properties
        }
    }

    public var cleanStart: Bool
    /// Seconds between two packets of the client; 0 turns the check off.
    public var keepAlive: UInt16
    public var values: ConnectProperties
    /// All properties, with those that ``values`` has.
    public var properties: Properties
    /// UTF-8; may be empty, in which case the broker names the client.
    public var clientID: ByteRange
    public var will: Will?
    /// UTF-8.
    public var userName: ByteRange?
    /// Any bytes; allowed without a user name.
    public var password: ByteRange?

    public init(
        cleanStart: Bool, keepAlive: UInt16, values: ConnectProperties = ConnectProperties(),
        properties: Properties = .none, clientID: ByteRange, will: Will? = nil,
        userName: ByteRange? = nil, password: ByteRange? = nil
    ) {
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.values = values
        self.properties = properties
        self.clientID = clientID
        self.will = will
        self.userName = userName
        self.password = password
    }

    /// Decodes the bytes behind the fixed header.
    public static func decode(
        _ body: ByteRange, _ bytes: RawSpan
    ) throws(PacketFault) -> Connect5 {
        var reader = FieldReader5(body)
        try checkVersion(&reader, bytes)
        let flags = try reader.byte(bytes)
        guard flags & 0x01 == 0 else { throw .connectReservedFlag }  // [MQTT-3.1.2-3]
        let hasWill = flags & 0x04 != 0
        // [MQTT-3.1.2-12]
        guard let willQoS = QoS(rawValue: flags >> 3 & 0x03) else { throw .willQoS }
        let willRetain = flags & 0x20 != 0
        // Without a will its QoS and retain are 0 [MQTT-3.1.2-11] [MQTT-3.1.2-13].
        guard hasWill || willQoS == .atMostOnce else { throw .willQoSWithoutWill }
        guard hasWill || !willRetain else { throw .willRetainWithoutWill }
        let keepAlive = try reader.integer(bytes)
        var values = ConnectProperties()
        let properties = try Properties.decode(&reader, bytes, in: .connect) { values.take($0) }
        guard values.authenticationData == nil || values.authenticationMethod != nil else {
            throw .authenticationDataWithoutMethod
        }

        // The payload's fields in their only order [MQTT-3.1.3-1].
        let clientID = try reader.string(bytes)
        let will = hasWill ? try decodeWill(&reader, bytes, willQoS, willRetain) : nil
        let userName = flags & 0x80 != 0 ? try reader.string(bytes) : nil
        let password = flags & 0x40 != 0 ? try reader.data(bytes) : nil
        // The payload ends where the flags say [MQTT-3.1.2-16] [MQTT-3.1.2-18].
        try reader.finish()
        return Connect5(
            cleanStart: flags & 0x02 != 0, keepAlive: keepAlive, values: values,
            properties: properties, clientID: clientID, will: will, userName: userName,
            password: password)
    }

    private static func checkVersion(
        _ reader: inout FieldReader5, _ bytes: RawSpan
    ) throws(PacketFault) {
        let name = try reader.data(bytes)
        let expected: StaticString = "MQTT"
        // [MQTT-3.1.2-1]
        guard name.count == expected.utf8CodeUnitCount else { throw .protocolName }
        for index in 0..<Int(name.count) {
            guard bytes.byte(at: name.start + index) == expected.utf8Start[index] else {
                throw .protocolName
            }
        }
        let level = try reader.byte(bytes)
        guard level == PacketDecoder5.protocolLevel else {
            throw .unsupportedProtocolLevel(level)  // [MQTT-3.1.2-2]
        }
    }

    private static func decodeWill(
        _ reader: inout FieldReader5, _ bytes: RawSpan, _ qos: QoS, _ retain: Bool
    ) throws(PacketFault) -> Will {
        var delay: UInt32 = 0
        var expiry: UInt32?
        let properties = try Properties.decode(&reader, bytes, in: .will) { property in
            switch property {
            case .willDelayInterval(let seconds): delay = seconds
            case .messageExpiryInterval(let seconds): expiry = seconds
            default: break
            }
        }
        let topic = try TopicName(checking: try reader.data(bytes), in: bytes)
        return Will(
            topic: topic, message: try reader.data(bytes), qos: qos, retain: retain,
            delayInterval: delay, messageExpiryInterval: expiry, properties: properties)
    }
}

/// The properties of CONNECT except user properties, with the values that their absence means
/// (section 3.1.2.11).
public struct ConnectProperties: Hashable, Sendable, BitwiseCopyable {
    /// Seconds; the largest number means that the session never ends.
    public private(set) var sessionExpiryInterval: UInt32 = 0
    /// PUBLISH packets of QoS 1 and 2 that the client handles at a time; never 0.
    public private(set) var receiveMaximum: UInt16 = .max
    /// Bytes of a whole packet; never 0. `nil` when the client sets no limit.
    public private(set) var maximumPacketSize: UInt32?
    public private(set) var topicAliasMaximum: UInt16 = 0
    public private(set) var requestResponseInformation = false
    public private(set) var requestProblemInformation = true
    public private(set) var authenticationMethod: ByteRange?
    /// Present only with a method.
    public private(set) var authenticationData: ByteRange?

    public init() {}

    mutating func take(_ property: Property) {
        switch property {
        case .sessionExpiryInterval(let seconds): sessionExpiryInterval = seconds
        case .receiveMaximum(let count): receiveMaximum = count
        case .maximumPacketSize(let count): maximumPacketSize = count
        case .topicAliasMaximum(let count): topicAliasMaximum = count
        case .requestResponseInformation(let isWanted): requestResponseInformation = isWanted
        case .requestProblemInformation(let isWanted): requestProblemInformation = isWanted
        case .authenticationMethod(let name): authenticationMethod = name
        case .authenticationData(let data): authenticationData = data
        default: break
        }
    }
}

extension TopicName {
    /// Checks a topic name by the rules of MQTT 5.0, which are those of 3.1.1 under other ids.
    init(checking range: ByteRange, in bytes: RawSpan) throws(PacketFault) {
        do throws(MalformedPacket) {
            try self.init(validating: range, in: bytes)
        } catch {
            throw PacketFault(text: error)
        }
    }
}
