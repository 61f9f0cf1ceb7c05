import Logging

/// What the log says of a connection that ended.
extension CloseReason {
    struct Announcement {
        let level: Logger.Level
        let message: Logger.Message

        init(_ level: Logger.Level, _ message: Logger.Message) {
            self.level = level
            self.message = message
        }
    }

    /// What is said to whoever did not ask for connection lifecycles; `nil` for nothing.
    var announcement: Announcement? {
        switch self {
        case .protocolViolation:
            Announcement(.notice, "Connection closed after a protocol violation")
        case .tooManyInboundQoS2, .topicLevels, .unsubscribeFilters, .outputLimit,
            .memoryShortage, .unfinishedPackets:
            Announcement(.warning, "Connection closed at a limit")
        case .connectTimeout, .administrator, .takenOver:
            Announcement(.info, "Connection closed by the broker")
        case .tlsOnPlainListener:
            Announcement(.notice, "Connection closed, the client speaks TLS")
        case .proxyHeader:
            Announcement(.notice, "Connection closed, its proxy sent no valid PROXY header")
        case .tlsRecord: Announcement(.notice, "Connection closed, its TLS was broken")
        case .certificateRevoked:
            Announcement(.notice, "Connection closed, its certificate counts no more")
        // A refusal is reported with its client where it happens.
        case .disconnect, .peerClosed, .networkError, .keepAlive, .notAuthorized,
            .badUserNameOrPassword, .identifierRejected, .unacceptableProtocolVersion,
            .tooManySessions, .authenticationBusy, .publishDenied, .storeFailure, .shutdown,
            .tlsHandshake, .addressLimit:
            nil
        }
    }
}
