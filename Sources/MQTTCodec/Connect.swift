/// CONNECT: opens a connection (section 3.1).
public struct Connect: Hashable, Sendable {
    /// The protocol versions that Hermes speaks.
    public enum Version: UInt8, Hashable, Sendable, BitwiseCopyable {
        /// Protocol name "MQIsdp", level 3.
        case v3_1 = 3
        /// Protocol name "MQTT", level 4.
        case v3_1_1 = 4
        /// Protocol name "MQTT", level 5, whose CONNECT is a ``Connect5``.
        case v5 = 5
    }

    public struct Will: Hashable, Sendable {
        public var topic: TopicName
        public var message: ByteRange
        public var qos: QoS
        public var retain: Bool

        public init(topic: TopicName, message: ByteRange, qos: QoS, retain: Bool) {
            self.topic = topic
            self.message = message
            self.qos = qos
            self.retain = retain
        }
    }

    public var version: Version
    public var cleanSession: Bool
    /// Seconds between two packets of the client; 0 turns the check off.
    public var keepAlive: UInt16
    /// UTF-8; may be empty, in which case the broker names the client.
    public var clientID: ByteRange
    public var will: Will?
    /// UTF-8.
    public var userName: ByteRange?
    /// Any bytes; present only with a user name [MQTT-3.1.2-22].
    public var password: ByteRange?

    public init(
        version: Version, cleanSession: Bool, keepAlive: UInt16, clientID: ByteRange,
        will: Will? = nil, userName: ByteRange? = nil, password: ByteRange? = nil
    ) {
        self.version = version
        self.cleanSession = cleanSession
        self.keepAlive = keepAlive
        self.clientID = clientID
        self.will = will
        self.userName = userName
        self.password = password
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(MalformedPacket) -> Connect {
        var reader = FieldReader(body)
        let version = try decodeVersion(&reader, bytes)
        let flags = try reader.byte(bytes)
        // The reserved flag is 0 [MQTT-3.1.2-3]; 3.1 calls the bit unused and clients send 0 too.
        guard flags & 0x01 == 0 else { throw .connectReservedFlag }
        let hasWill = flags & 0x04 != 0
        // [MQTT-3.1.2-14]
        guard let willQoS = QoS(rawValue: flags >> 3 & 0x03) else { throw .willQoS }
        let willRetain = flags & 0x20 != 0
        // Without a will its QoS and retain are 0 [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT-3.1.2-15].
        guard hasWill || (willQoS == .atMostOnce && !willRetain) else {
            throw .willFlagsWithoutWill
        }
        let hasPassword = flags & 0x40 != 0
        let hasUserName = flags & 0x80 != 0
        // [MQTT-3.1.2-22]
        guard hasUserName || !hasPassword else { throw .passwordWithoutUserName }
        let keepAlive = try reader.integer(bytes)

        // The payload's fields in their only order [MQTT-3.1.3-1].
        let clientID = try reader.string(bytes)
        var will: Will?
        if hasWill {
            let topic = try TopicName(validating: try reader.data(bytes), in: bytes)
            will = Will(
                topic: topic, message: try reader.data(bytes), qos: willQoS, retain: willRetain)
        }
        let userName = hasUserName ? try reader.string(bytes) : nil
        let password = hasPassword ? try reader.data(bytes) : nil
        // The payload ends where the flags say [MQTT-3.1.2-18] [MQTT-3.1.2-20].
        try reader.finish()
        return Connect(
            version: version, cleanSession: flags & 0x02 != 0, keepAlive: keepAlive,
            clientID: clientID, will: will, userName: userName, password: password)
    }

    private static func decodeVersion(
        _ reader: inout FieldReader, _ bytes: RawSpan
    ) throws(MalformedPacket) -> Version {
        let name = try reader.data(bytes)
        let version: Version
        switch name.count {
        case 4 where matches(name, "MQTT", bytes): version = .v3_1_1
        case 6 where matches(name, "MQIsdp", bytes): version = .v3_1
        default: throw .protocolName  // [MQTT-3.1.2-1]
        }
        let level = try reader.byte(bytes)
        guard level == version.rawValue else { throw .unsupportedProtocolLevel(level) }
        return version
    }

    private static func matches(
        _ range: ByteRange, _ name: StaticString, _ bytes: RawSpan
    ) -> Bool {
        for index in 0..<Int(range.count) {
            guard bytes.byte(at: range.start + index) == name.utf8Start[index] else { return false }
        }
        return true
    }
}

/// CONNACK: the broker's answer to CONNECT (section 3.2).
public struct Connack: Hashable, Sendable {
    public enum ReturnCode: UInt8, Hashable, Sendable, CaseIterable {
        case accepted = 0
        case unacceptableProtocolVersion, identifierRejected, serverUnavailable
        case badUserNameOrPassword, notAuthorized
    }

    /// True only with ``ReturnCode/accepted`` [MQTT-3.2.2-4].
    public let sessionPresent: Bool
    public let returnCode: ReturnCode

    public static func accepted(sessionPresent: Bool) -> Connack {
        Connack(sessionPresent: sessionPresent, returnCode: .accepted)
    }

    public static func refused(_ code: ReturnCode) -> Connack {
        Connack(sessionPresent: false, returnCode: code)
    }

    private init(sessionPresent: Bool, returnCode: ReturnCode) {
        self.sessionPresent = sessionPresent
        self.returnCode = returnCode
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(MalformedPacket) -> Connack {
        var reader = FieldReader(body)
        let flags = try reader.byte(bytes)
        guard flags & 0xFE == 0 else { throw .reservedFlags }
        guard let code = ReturnCode(rawValue: try reader.byte(bytes)) else { throw .returnCode }
        guard flags == 0 || code == .accepted else { throw .reservedFlags }
        try reader.finish()
        return Connack(sessionPresent: flags == 1, returnCode: code)
    }
}
