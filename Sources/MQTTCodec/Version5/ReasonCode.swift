/// The outcome of an operation (MQTT 5.0, section 2.4). From 0x80 on it is a failure.
///
/// One value may have several names; 0x00 is success, normal disconnection and granted QoS 0.
public enum ReasonCode: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case success = 0x00
    case grantedQoS1 = 0x01
    case grantedQoS2 = 0x02
    case disconnectWithWill = 0x04
    case noMatchingSubscribers = 0x10
    case noSubscriptionExisted = 0x11
    case continueAuthentication = 0x18
    case reauthenticate = 0x19
    case unspecifiedError = 0x80
    case malformedPacket = 0x81
    case protocolError = 0x82
    case implementationSpecificError = 0x83
    case unsupportedProtocolVersion = 0x84
    case clientIdentifierNotValid = 0x85
    case badUserNameOrPassword = 0x86
    case notAuthorized = 0x87
    case serverUnavailable = 0x88
    case serverBusy = 0x89
    case banned = 0x8A
    case serverShuttingDown = 0x8B
    case badAuthenticationMethod = 0x8C
    case keepAliveTimeout = 0x8D
    case sessionTakenOver = 0x8E
    case topicFilterInvalid = 0x8F
    case topicNameInvalid = 0x90
    case packetIdentifierInUse = 0x91
    case packetIdentifierNotFound = 0x92
    case receiveMaximumExceeded = 0x93
    case topicAliasInvalid = 0x94
    case packetTooLarge = 0x95
    case messageRateTooHigh = 0x96
    case quotaExceeded = 0x97
    case administrativeAction = 0x98
    case payloadFormatInvalid = 0x99
    case retainNotSupported = 0x9A
    case qosNotSupported = 0x9B
    case useAnotherServer = 0x9C
    case serverMoved = 0x9D
    case sharedSubscriptionsNotSupported = 0x9E
    case connectionRateExceeded = 0x9F
    case maximumConnectTime = 0xA0
    case subscriptionIdentifiersNotSupported = 0xA1
    case wildcardSubscriptionsNotSupported = 0xA2

    public var isFailure: Bool { rawValue >= 0x80 }

    /// The QoS that this code of a SUBACK grants; `nil` for a failure and for codes of other
    /// packets.
    public var grantedQoS: QoS? { QoS(rawValue: rawValue) }

    /// The code of a SUBACK that grants `qos`.
    public init(granted qos: QoS) {
        switch qos {
        case .atMostOnce: self = .success
        case .atLeastOnce: self = .grantedQoS1
        case .exactlyOnce: self = .grantedQoS2
        }
    }

    /// True if that side may send this code in a packet of this type; false for packets without a
    /// reason code.
    ///
    /// A client's 0x10 in PUBACK and PUBREC is taken, although the standard says that only servers
    /// send it.
    public func isAllowed(in type: PacketType5, from sender: PacketSender) -> Bool {
        let codes: ReasonCodes =
            switch type {
            case .connack: .connack
            case .puback, .pubrec: .received
            case .pubrel, .pubcomp: .released
            case .suback: .suback
            case .unsuback: .unsuback
            case .disconnect: sender == .client ? .disconnectOfClient : .disconnectOfServer
            case .auth: sender == .client ? .authOfClient : .authOfServer
            case .connect, .publish, .subscribe, .unsubscribe, .pingreq, .pingresp: .none
            }
        return codes.contains(self)
    }

    /// Reads a code that the table of its packet has.
    static func decode(
        _ byte: UInt8, in type: PacketType5, from sender: PacketSender
    ) throws(PacketFault) -> ReasonCode {
        guard let code = ReasonCode(rawValue: byte), code.isAllowed(in: type, from: sender) else {
            throw .reasonCode(type)
        }
        return code
    }
}

/// The codes of one packet's table: a bit for each below 0x20, and for each from 0x80 to 0xA2.
private struct ReasonCodes {
    private let successes: UInt32
    private let failures: UInt64

    private init(_ successes: [UInt8], _ failures: [UInt8]) {
        self.successes = successes.reduce(0) { $0 | 1 << $1 }
        self.failures = failures.reduce(0) { $0 | 1 << ($1 - 0x80) }
    }

    func contains(_ code: ReasonCode) -> Bool {
        code.isFailure
            ? failures >> (code.rawValue - 0x80) & 1 == 1 : successes >> code.rawValue & 1 == 1
    }

    static let none = ReasonCodes([], [])
    static let connack = ReasonCodes(
        [0x00],
        [
            0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95,
            0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
        ])
    static let received = ReasonCodes(
        [0x00, 0x10], [0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])
    static let released = ReasonCodes([0x00], [0x92])
    static let suback = ReasonCodes(
        [0x00, 0x01, 0x02], [0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2])
    static let unsuback = ReasonCodes([0x00, 0x11], [0x80, 0x83, 0x87, 0x8F, 0x91])
    private static let disconnectOfBoth: [UInt8] = [
        0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    ]
    static let disconnectOfClient = ReasonCodes([0x00, 0x04], disconnectOfBoth)
    static let disconnectOfServer = ReasonCodes(
        [0x00],
        disconnectOfBoth + [
            0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1,
            0xA2,
        ])
    static let authOfClient = ReasonCodes([0x18, 0x19], [])
    static let authOfServer = ReasonCodes([0x00, 0x18], [])
}
