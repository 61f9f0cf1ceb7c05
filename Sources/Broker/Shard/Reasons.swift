import MQTTCore

/// Why a connection ended.
package enum CloseReason: Hashable, Sendable, BitwiseCopyable {
    case disconnect
    case peerClosed
    case networkError(code: Int32)
    case protocolViolation(ProtocolViolation)
    case connectTimeout
    case keepAlive
    case takenOver
    case notAuthorized
    case badUserNameOrPassword
    case identifierRejected
    case unacceptableProtocolVersion
    case tooManySessions
    case authenticationBusy
    case tooManyInboundQoS2
    case topicLevels
    case outputLimit
    case administrator
    case shutdown

    /// A word for tables, logs and metrics.
    package var name: String {
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
        case .administrator: "administrator"
        case .shutdown: "shutdown"
        }
    }

    /// The setting that an operator would raise; `nil` when none is involved.
    package var setting: String? {
        switch self {
        case .connectTimeout: "limits.connect_timeout"
        case .tooManySessions: "limits.max_sessions"
        case .tooManyInboundQoS2: "limits.max_inbound_qos2"
        case .topicLevels: "limits.max_topic_levels"
        case .outputLimit: "limits.output_bytes"
        case .disconnect, .peerClosed, .networkError, .protocolViolation, .keepAlive, .takenOver,
            .notAuthorized, .badUserNameOrPassword, .identifierRejected,
            .unacceptableProtocolVersion, .authenticationBusy, .administrator, .shutdown:
            nil
        }
    }
}

/// Why a message did not reach a receiver that wanted it.
package enum DropReason: UInt8, CaseIterable, Sendable, BitwiseCopyable {
    /// QoS 0, and the client was away.
    case away
    /// QoS 0, and the client did not read fast enough.
    case slowReader
    /// The queue was full: `limits.queue_messages`, `limits.queue_bytes`.
    case queueFull
    /// Its time was over before it could be sent.
    case expired

    package var name: String {
        switch self {
        case .away: "away"
        case .slowReader: "slow_reader"
        case .queueFull: "queue_full"
        case .expired: "expired"
        }
    }
}

/// Counts of drops by reason.
package struct DropCounts: Sendable, BitwiseCopyable {
    private var counts: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    package init() {}

    package mutating func add(_ reason: DropReason) {
        switch reason {
        case .away: counts.0 += 1
        case .slowReader: counts.1 += 1
        case .queueFull: counts.2 += 1
        case .expired: counts.3 += 1
        }
    }

    package subscript(reason: DropReason) -> UInt64 {
        switch reason {
        case .away: counts.0
        case .slowReader: counts.1
        case .queueFull: counts.2
        case .expired: counts.3
        }
    }
}
