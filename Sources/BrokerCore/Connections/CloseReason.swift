import BrokerAPI
import MQTTCore

/// The reason for which a connection ended.
public enum CloseReason: Hashable, Sendable, BitwiseCopyable {
    case disconnect
    /// DISCONNECT of MQTT 5.0 with a code other than 0x00, after which the will is published.
    case disconnectWithWill
    case peerClosed
    case networkError(code: Int32)
    case protocolViolation(ProtocolViolation)
    case connectTimeout
    /// The TLS handshake failed.
    case tlsHandshake
    /// The client began TLS where the listener serves plain TCP.
    case tlsOnPlainListener
    /// A proxy's connection does not begin with a valid PROXY header; `flaw` is the transport's
    /// code.
    case proxyHeader(flaw: UInt8)
    /// Reloaded TLS files no longer accept the client's certificate.
    case certificateRevoked
    /// A TLS record after the handshake broke a rule. `alert` is the description of the alert sent
    /// (RFC 8446, section 6); 0 when the client itself sent an alert.
    case tlsRecord(alert: UInt8)
    /// The request for WebSocket, or a frame, broke a rule; `flaw` is the transport's code.
    case webSocket(flaw: UInt8)
    case keepAlive
    case takenOver
    case notAuthorized
    case badUserNameOrPassword
    /// CONNECT came with a token that is not accepted.
    case tokenRefused
    /// The token by which the client had connected has ended.
    case tokenExpired
    case identifierRejected
    case unacceptableProtocolVersion
    /// CONNECT of MQTT 5.0 names a method of authentication that the broker does not have.
    case badAuthenticationMethod
    case tooManySessions
    case clientIDTooLong
    case userNameTooLong
    /// This limit of the sessions' bytes, or of memory, leaves no room for what a CONNECT would add.
    case noRoom(Limit)
    case authenticationBusy
    /// The company's service that is asked about logins gave no answer.
    case loginServiceUnavailable
    case tooManyInboundQoS2
    case topicLevels
    /// The topics of a client's aliases had too many bytes together.
    case aliasBytes
    /// An UNSUBSCRIBE named more filters than one packet may.
    case unsubscribeFilters
    case outputLimit
    /// Memory was short: the client had no CONNACK yet, or did not read its messages.
    case memoryShortage
    /// All connections together held too many bytes of incomplete packets.
    case unfinishedPackets
    /// The address in a PROXY header already has its share of connections.
    case addressLimit
    /// The access rules deny the topic of a PUBLISH.
    case publishDenied
    case administrator
    /// An operator drains the broker: its clients are to go elsewhere.
    case draining
    /// Too many wrong passwords came before, by this limit; this one was not looked at.
    case lockedOut(Limit)
    /// A ban refuses the CONNECT.
    case banned(Ban.ID)
    /// A ban closed the connection, or refuses its address.
    case closedByBan(Ban.ID)
    /// The store could not read the session's queue.
    case storeFailure
    case shutdown

    /// A reason without details, so that each can have a counter.
    public enum Kind: UInt8, CountLabel, BitwiseCopyable {
        case disconnect, peerClosed, networkError, protocolViolation, connectTimeout, keepAlive
        case takenOver, notAuthorized, badUserNameOrPassword, identifierRejected
        case unacceptableProtocolVersion, tooManySessions, authenticationBusy, tooManyInboundQoS2
        case topicLevels, outputLimit, publishDenied, administrator, storeFailure, shutdown
        case tlsHandshake, tlsOnPlainListener, proxyHeader, memoryShortage, unfinishedPackets
        case addressLimit, certificateRevoked, tlsRecord, unsubscribeFilters
        case clientIDTooLong, userNameTooLong, noRoom, webSocket, tokenRefused
        case tokenExpired, banned, lockedOut, draining, loginServiceUnavailable
        case badAuthenticationMethod, aliasBytes

        public var name: String {
            switch self {
            case .disconnect: "disconnect"
            case .peerClosed: "peer_closed"
            case .networkError: "network_error"
            case .protocolViolation: "protocol_violation"
            case .connectTimeout: "connect_timeout"
            case .keepAlive: "keep_alive"
            case .takenOver: "taken_over"
            case .notAuthorized: "not_authorized"
            case .badUserNameOrPassword: "bad_user_name_or_password"
            case .identifierRejected: "identifier_rejected"
            case .unacceptableProtocolVersion: "unacceptable_protocol_version"
            case .tooManySessions: "too_many_sessions"
            case .authenticationBusy: "authentication_busy"
            case .tooManyInboundQoS2: "too_many_inbound_qos2"
            case .topicLevels: "topic_levels"
            case .outputLimit: "output_limit"
            case .publishDenied: "publish_denied"
            case .administrator: "administrator"
            case .storeFailure: "store_failure"
            case .shutdown: "shutdown"
            case .tlsHandshake: "tls_handshake"
            case .tlsOnPlainListener: "tls_on_plain_listener"
            case .proxyHeader: "proxy_header"
            case .memoryShortage: "memory_shortage"
            case .unfinishedPackets: "unfinished_packets"
            case .addressLimit: "address_limit"
            case .certificateRevoked: "certificate_revoked"
            case .tlsRecord: "tls_record"
            case .unsubscribeFilters: "unsubscribe_filters"
            case .clientIDTooLong: "client_id_too_long"
            case .userNameTooLong: "user_name_too_long"
            case .noRoom: "no_room"
            case .webSocket: "websocket"
            case .tokenRefused: "token_refused"
            case .tokenExpired: "token_expired"
            case .banned: "banned"
            case .lockedOut: "locked_out"
            case .draining: "draining"
            case .loginServiceUnavailable: "login_service_unavailable"
            case .badAuthenticationMethod: "bad_authentication_method"
            case .aliasBytes: "alias_bytes"
            }
        }
    }

    public var kind: Kind {
        switch self {
        case .disconnect, .disconnectWithWill: .disconnect
        case .peerClosed: .peerClosed
        case .networkError: .networkError
        case .protocolViolation: .protocolViolation
        case .connectTimeout: .connectTimeout
        case .keepAlive: .keepAlive
        case .takenOver: .takenOver
        case .notAuthorized: .notAuthorized
        case .badUserNameOrPassword: .badUserNameOrPassword
        case .identifierRejected: .identifierRejected
        case .unacceptableProtocolVersion: .unacceptableProtocolVersion
        case .tooManySessions: .tooManySessions
        case .authenticationBusy: .authenticationBusy
        case .tooManyInboundQoS2: .tooManyInboundQoS2
        case .topicLevels: .topicLevels
        case .outputLimit: .outputLimit
        case .publishDenied: .publishDenied
        case .administrator: .administrator
        case .storeFailure: .storeFailure
        case .shutdown: .shutdown
        case .tlsHandshake: .tlsHandshake
        case .tlsOnPlainListener: .tlsOnPlainListener
        case .proxyHeader: .proxyHeader
        case .memoryShortage: .memoryShortage
        case .unfinishedPackets: .unfinishedPackets
        case .addressLimit: .addressLimit
        case .certificateRevoked: .certificateRevoked
        case .tlsRecord: .tlsRecord
        case .unsubscribeFilters: .unsubscribeFilters
        case .clientIDTooLong: .clientIDTooLong
        case .userNameTooLong: .userNameTooLong
        case .noRoom: .noRoom
        case .webSocket: .webSocket
        case .tokenRefused: .tokenRefused
        case .tokenExpired: .tokenExpired
        case .banned, .closedByBan: .banned
        case .lockedOut: .lockedOut
        case .draining: .draining
        case .loginServiceUnavailable: .loginServiceUnavailable
        case .badAuthenticationMethod: .badAuthenticationMethod
        case .aliasBytes: .aliasBytes
        }
    }

    /// A word for tables, logs and metrics.
    public var name: String { kind.name }

    /// The ban that ended the connection; `nil` if none did.
    public var ban: Ban.ID? {
        if case .banned(let ban) = self { return ban }
        if case .closedByBan(let ban) = self { return ban }
        return nil
    }

    /// The limit that ended the connection; `nil` if none did, or if ``limit(wasOpen:)`` tells.
    public var limit: Limit? {
        switch self {
        case .connectTimeout: .connectTimeout
        case .tooManySessions: .maxSessions
        case .clientIDTooLong: .maxClientID
        case .userNameTooLong: .maxUserName
        case .noRoom(let limit), .lockedOut(let limit): limit
        case .tooManyInboundQoS2: .maxInboundQoS2
        case .topicLevels: .maxTopicLevels
        case .unsubscribeFilters: .unsubscribeFilters
        case .outputLimit: .outputBytes
        case .memoryShortage: .memory
        case .unfinishedPackets: .unfinishedBytes
        case .disconnect, .disconnectWithWill, .peerClosed, .networkError, .protocolViolation,
            .keepAlive, .takenOver,
            .notAuthorized, .badUserNameOrPassword, .identifierRejected,
            .unacceptableProtocolVersion, .authenticationBusy, .loginServiceUnavailable,
            .publishDenied, .administrator,
            .storeFailure, .shutdown, .tlsHandshake, .tlsOnPlainListener, .certificateRevoked,
            .proxyHeader, .addressLimit, .tlsRecord, .webSocket, .tokenRefused, .tokenExpired,
            .banned, .closedByBan, .draining, .badAuthenticationMethod, .aliasBytes:
            nil
        }
    }

    /// The limit that ended the connection; `wasOpen` is true after an accepted CONNECT.
    package func limit(wasOpen: Bool) -> Limit? {
        switch self {
        case .protocolViolation(.malformed(.packetTooLarge)),
            .protocolViolation(.fault(.packetTooLarge)):
            return wasOpen ? .maxPacket : .maxConnectPacket
        default: return limit
        }
    }

    /// True when unsent packets are still sent at the end of the connection.
    package var sendsOutputFirst: Bool {
        switch self {
        case .badUserNameOrPassword, .notAuthorized, .identifierRejected, .tooManySessions,
            .clientIDTooLong, .userNameTooLong, .noRoom, .unacceptableProtocolVersion,
            .authenticationBusy, .loginServiceUnavailable, .publishDenied, .disconnect,
            .disconnectWithWill, .shutdown,
            .tokenRefused, .tokenExpired, .banned, .lockedOut, .draining, .badAuthenticationMethod:
            true
        case .peerClosed, .networkError, .protocolViolation, .connectTimeout, .keepAlive,
            .takenOver, .tooManyInboundQoS2, .topicLevels, .unsubscribeFilters, .outputLimit,
            .administrator, .storeFailure, .tlsHandshake, .tlsOnPlainListener, .proxyHeader,
            .memoryShortage, .unfinishedPackets, .addressLimit, .certificateRevoked, .tlsRecord,
            .webSocket, .closedByBan, .aliasBytes:
            false
        }
    }

    /// The log line about an ended connection, written even when lifecycles are not logged.
    public struct Announcement {
        public enum Severity: Sendable { case info, notice, warning }

        public let severity: Severity
        public let message: String

        package init(_ severity: Severity, _ message: String) {
            self.severity = severity
            self.message = message
        }
    }

    /// `nil` for a reason that is logged only with connection lifecycles.
    public var announcement: Announcement? {
        switch self {
        case .protocolViolation:
            Announcement(.notice, "Connection closed after a protocol violation")
        case .tooManyInboundQoS2, .topicLevels, .unsubscribeFilters, .outputLimit,
            .memoryShortage, .unfinishedPackets, .aliasBytes:
            Announcement(.warning, "Connection closed at a limit")
        case .connectTimeout, .administrator, .takenOver, .tokenExpired, .closedByBan:
            Announcement(.info, "Connection closed by the broker")
        case .tlsOnPlainListener:
            Announcement(.notice, "Connection closed, the client speaks TLS")
        case .proxyHeader:
            Announcement(.notice, "Connection closed, its proxy sent no valid PROXY header")
        case .tlsRecord: Announcement(.notice, "Connection closed, its TLS was broken")
        case .webSocket: Announcement(.notice, "Connection closed, its WebSocket was broken")
        case .certificateRevoked:
            Announcement(.notice, "Connection closed, its certificate counts no more")
        // A rejected CONNECT is reported, with its client, where that happens.
        case .disconnect, .disconnectWithWill, .peerClosed, .networkError, .keepAlive,
            .notAuthorized,
            .badUserNameOrPassword, .identifierRejected, .unacceptableProtocolVersion,
            .tooManySessions, .authenticationBusy, .loginServiceUnavailable, .publishDenied,
            .storeFailure, .shutdown,
            .tlsHandshake, .addressLimit, .clientIDTooLong, .userNameTooLong, .noRoom,
            .tokenRefused, .banned, .lockedOut, .draining, .badAuthenticationMethod:
            nil
        }
    }
}
