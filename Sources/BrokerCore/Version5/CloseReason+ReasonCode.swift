import MQTTCodec

/// What a client of MQTT 5.0 is told of a refusal or of the end of its connection.
extension CloseReason {
    /// The code of the CONNACK that refuses a CONNECT for this reason. A login that fails says the same
    /// whatever was wrong with it, so that it teaches a guesser nothing.
    package var codeOfRefusal: ReasonCode {
        switch self {
        case .badUserNameOrPassword, .tokenRefused, .lockedOut, .userNameTooLong:
            .badUserNameOrPassword
        case .notAuthorized, .publishDenied, .certificateRevoked: .notAuthorized
        case .loginServiceUnavailable: .serverUnavailable
        case .authenticationBusy, .memoryShortage, .unfinishedPackets: .serverBusy
        case .identifierRejected, .clientIDTooLong: .clientIdentifierNotValid
        case .unacceptableProtocolVersion: .unsupportedProtocolVersion
        case .tooManySessions, .noRoom, .addressLimit: .quotaExceeded
        case .draining: .useAnotherServer
        case .shutdown: .serverUnavailable
        case .banned, .closedByBan: .banned
        case .badAuthenticationMethod: .badAuthenticationMethod
        case .protocolViolation(let violation): violation.reasonCode
        case .topicLevels: .topicNameInvalid
        case .disconnect, .disconnectWithWill, .peerClosed, .networkError, .connectTimeout,
            .tlsHandshake,
            .tlsOnPlainListener, .proxyHeader, .tlsRecord, .webSocket, .keepAlive, .takenOver,
            .tokenExpired, .tooManyInboundQoS2, .unsubscribeFilters, .outputLimit, .administrator,
            .storeFailure, .aliasBytes:
            .unspecifiedError
        }
    }

    /// What the Reason String of DISCONNECT says: for people, not for programs.
    package var words: String {
        if case .protocolViolation(let violation) = self { return violation.explanation }
        return String(
            decoding: name.utf8.map { $0 == UInt8(ascii: "_") ? 0x20 : $0 }, as: UTF8.self)
    }

    /// True when CONNACK has said what was wrong with a CONNECT of MQTT 5.0.
    package var isFaultOfConnect: Bool {
        if case .protocolViolation(.fault) = self { true } else { false }
    }

    /// The code of the DISCONNECT that the broker sends before it closes an open connection; `nil` when
    /// none is sent, because the peer has closed, or reads nothing.
    package var codeOfDisconnect: ReasonCode? {
        switch self {
        case .disconnect, .disconnectWithWill, .peerClosed, .networkError, .connectTimeout,
            .tlsHandshake,
            .tlsOnPlainListener, .proxyHeader, .tlsRecord, .webSocket, .outputLimit,
            .memoryShortage:
            nil
        case .keepAlive: .keepAliveTimeout
        case .takenOver: .sessionTakenOver
        case .draining: .useAnotherServer
        case .shutdown: .serverShuttingDown
        case .administrator, .banned, .closedByBan: .administrativeAction
        case .tokenExpired: .maximumConnectTime
        case .notAuthorized, .publishDenied, .certificateRevoked, .badUserNameOrPassword,
            .tokenRefused, .lockedOut, .badAuthenticationMethod:
            .notAuthorized
        case .tooManyInboundQoS2: .receiveMaximumExceeded
        case .topicLevels: .topicNameInvalid
        case .unsubscribeFilters, .unfinishedPackets, .addressLimit, .tooManySessions, .noRoom,
            .clientIDTooLong, .userNameTooLong, .aliasBytes:
            .quotaExceeded
        case .protocolViolation(let violation): violation.reasonCode
        case .storeFailure, .identifierRejected, .unacceptableProtocolVersion:
            .unspecifiedError
        case .authenticationBusy, .loginServiceUnavailable: .serverBusy
        }
    }
}

extension ProtocolViolation {
    /// What CONNACK or DISCONNECT says of it.
    package var reasonCode: ReasonCode {
        switch self {
        case .fault(let fault): fault.reasonCode
        case .topicAlias: .topicAliasInvalid
        case .malformed: .malformedPacket
        case .firstPacketNotConnect, .secondConnect, .packetOnlyServersSend,
            .wrongAcknowledgement, .unknownTopicAlias, .authWithoutMethod, .raisedSessionExpiry:
            .protocolError
        }
    }
}
