import BrokerAPI
import BrokerCore
import BrokerFeatures
import Structures
import Transport

/// Connections of WebSocket, whose ends are told by close frames.
extension BrokerLoop {
    /// The smallest bound on the payload of a frame, so that a client may send some small packets in one
    /// whatever `limits.max_packet` is.
    private static var smallestFrameBound: Int { 64 * 1_024 }
    /// The most bytes of a packet before its remaining length counts.
    private static var packetHeaderBytes: Int { 5 }

    /// Tells the reactor what listeners ask of WebSocket.
    static func setWebSocket(_ settings: BrokerSettings, _ reactor: inout Reactor) {
        for (number, listener) in settings.listeners.enumerated() {
            guard let webSocket = listener.webSocket else { continue }
            reactor.setWebSocket(
                WebSocketRules(
                    path: webSocket.path, origins: webSocket.origins,
                    readsTokenInQuery: webSocket.readsTokenInQuery,
                    readsTokenInHeader: webSocket.readsTokenInHeader),
                ofListener: number)
        }
        reactor.mostFramePayload = max(
            smallestFrameBound, settings.limits.maxPacketBytes + packetHeaderBytes)
    }

    /// Has the shard take packets, with the token that the connection's request has brought. It is
    /// freed once the CONNECT has come.
    mutating func offerWithToken(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) -> Int {
        let consumed = shard.receive(handle, bytes, token: reactor.token(of: handle))
        if !shard.awaitsConnect(handle) { reactor.releaseToken(handle) }
        return consumed
    }

    /// Sets the code of a connection's close frame. True when the peer gets time to read it.
    mutating func setCloseCode(of closing: Closing) -> Bool {
        guard reactor.setCloseCode(closing.connection, Self.closeCode(of: closing.reason)) else {
            return false
        }
        switch closing.reason {
        // The peer has gone, or all connections end together.
        case .peerClosed, .networkError, .tlsRecord, .shutdown: return false
        default: return true
        }
    }

    /// The code of the close frame for a reason (RFC 6455, section 7.4.1).
    static func closeCode(of reason: CloseReason) -> WebSocketCloseCode {
        switch reason {
        case .disconnect, .disconnectWithWill, .peerClosed, .networkError, .tlsHandshake,
            .tlsOnPlainListener,
            .proxyHeader, .tlsRecord, .administrator, .keepAlive, .connectTimeout, .takenOver:
            .normal
        case .shutdown, .draining: .goingAway
        case .protocolViolation, .unacceptableProtocolVersion, .webSocket: .protocolError
        case .notAuthorized, .badUserNameOrPassword, .identifierRejected, .publishDenied,
            .certificateRevoked, .clientIDTooLong, .userNameTooLong, .tooManyInboundQoS2,
            .topicLevels, .unsubscribeFilters, .outputLimit, .addressLimit, .tokenRefused,
            .tokenExpired, .banned, .closedByBan, .lockedOut, .badAuthenticationMethod, .aliasBytes:
            .policyViolation
        case .tooManySessions, .noRoom, .authenticationBusy, .loginServiceUnavailable,
            .memoryShortage, .unfinishedPackets:
            .tryAgainLater
        case .storeFailure: .internalError
        }
    }
}
