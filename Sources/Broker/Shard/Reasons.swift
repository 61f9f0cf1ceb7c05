import BrokerAPI
import MQTTCore
import TLS
import Transport

/// Why a connection ended.
package enum CloseReason: Hashable, Sendable, BitwiseCopyable {
    case disconnect
    case peerClosed
    case networkError(code: Int32)
    case protocolViolation(ProtocolViolation)
    case connectTimeout
    /// Its TLS handshake failed.
    case tlsHandshake
    /// The client began TLS where the listener serves plain TCP.
    case tlsOnPlainListener
    /// A proxy's connection that does not begin with its header.
    case proxyHeader(MalformedProxyHeader)
    /// The certificate that it showed counts no more: TLS files that were read again say so.
    case certificateRevoked
    /// What came behind its TLS handshake broke a rule of TLS, which this alert says; `closeNotify` when
    /// the client itself sent an alert.
    case tlsRecord(SecureChannel.Alert)
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
    /// An UNSUBSCRIBE named more filters than one may.
    case unsubscribeFilters
    case outputLimit
    /// Memory was short: it had not been let in yet, or it did not read what it was sent.
    case memoryShortage
    /// All connections together held too much of unfinished packets.
    case unfinishedPackets
    /// A proxy's header named an address that has had its share, which was said and counted there.
    case addressLimit
    /// It published to a topic that the access rules do not allow it.
    case publishDenied
    case administrator
    /// Its queue could not be read.
    case storeFailure
    case shutdown

    /// A reason without its details: few enough to count each.
    package enum Kind: UInt8, CountLabel {
        case disconnect, peerClosed, networkError, protocolViolation, connectTimeout, keepAlive
        case takenOver, notAuthorized, badUserNameOrPassword, identifierRejected
        case unacceptableProtocolVersion, tooManySessions, authenticationBusy, tooManyInboundQoS2
        case topicLevels, outputLimit, publishDenied, administrator, storeFailure, shutdown
        case tlsHandshake, tlsOnPlainListener, proxyHeader, memoryShortage, unfinishedPackets
        case addressLimit, certificateRevoked, tlsRecord, unsubscribeFilters

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
            }
        }
    }

    package var kind: Kind {
        switch self {
        case .disconnect: .disconnect
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
        }
    }

    /// A word for tables, logs and metrics.
    package var name: String { kind.name }

    /// The setting that an operator would raise, or the limit that has none; `nil` when none is involved.
    package var setting: String? {
        switch self {
        case .connectTimeout: "limits.connect_timeout"
        case .tooManySessions: "limits.max_sessions"
        case .tooManyInboundQoS2: "limits.max_inbound_qos2"
        case .topicLevels: "limits.max_topic_levels"
        case .unsubscribeFilters: "none: an UNSUBSCRIBE has \(Shard.maxUnsubscribeFilters) filters"
        case .outputLimit: "limits.output_bytes"
        case .proxyHeader: "listeners[].proxy_from"
        case .memoryShortage: "limits.memory"
        case .unfinishedPackets: "limits.unfinished_bytes"
        case .disconnect, .peerClosed, .networkError, .protocolViolation, .keepAlive, .takenOver,
            .notAuthorized, .badUserNameOrPassword, .identifierRejected,
            .unacceptableProtocolVersion, .authenticationBusy, .publishDenied, .administrator,
            .storeFailure, .shutdown, .tlsHandshake, .tlsOnPlainListener, .certificateRevoked,
            .addressLimit, .tlsRecord:
            nil
        }
    }

    /// The limit that ended the connection; `wasOpen` says that its CONNECT had been accepted.
    func limit(wasOpen: Bool) -> Limit? {
        switch self {
        case .connectTimeout: .connectTimeout
        case .tooManySessions: .maxSessions
        case .tooManyInboundQoS2: .maxInboundQoS2
        case .topicLevels: .maxTopicLevels
        case .unsubscribeFilters: .unsubscribeFilters
        case .outputLimit: .outputBytes
        case .memoryShortage: .memory
        case .unfinishedPackets: .unfinishedBytes
        case .protocolViolation(.malformed(.packetTooLarge)):
            wasOpen ? .maxPacket : .maxConnectPacket
        case .disconnect, .peerClosed, .networkError, .protocolViolation, .keepAlive, .takenOver,
            .notAuthorized, .badUserNameOrPassword, .identifierRejected,
            .unacceptableProtocolVersion, .authenticationBusy, .publishDenied, .administrator,
            .storeFailure, .shutdown, .tlsHandshake, .tlsOnPlainListener, .certificateRevoked,
            .proxyHeader, .addressLimit, .tlsRecord:
            nil
        }
    }
}

/// Why a message did not reach a receiver that wanted it.
package enum DropReason: UInt8, CountLabel, BitwiseCopyable {
    /// QoS 0, and the client was away.
    case away
    /// QoS 0, and the client did not read fast enough.
    case slowReader
    /// The queue was full: `limits.queue_messages`, `limits.queue_bytes`.
    case queueFull
    /// Its time was over before it could be sent.
    case expired
    /// Published by a client below `$SYS/`, where only the broker does (section 4.7.2).
    case reservedTopic
    /// The operator emptied the queue.
    case byOperator
    /// It waited, and meanwhile its receiver lost the right to read it.
    case notAllowed

    package var name: String {
        switch self {
        case .away: "away"
        case .slowReader: "slow_reader"
        case .queueFull: "queue_full"
        case .expired: "expired"
        case .reservedTopic: "reserved_topic"
        case .byOperator: "operator"
        case .notAllowed: "acl"
        }
    }
}

/// Counts of drops by reason, in place. The highest value of the integer stands for that and more.
package struct DropCounts<Value: FixedWidthInteger & UnsignedInteger & BitwiseCopyable & Sendable>:
    Sendable, BitwiseCopyable
{
    // One for each case of `DropReason`, which a test compares.
    private var counts = InlineArray<7, Value>(repeating: 0)

    package init() {}

    static var capacity: Int { Self().counts.count }

    package mutating func add(_ reason: DropReason) {
        let index = Int(reason.rawValue)
        if counts[index] < .max { counts[index] += 1 }
    }

    package subscript(reason: DropReason) -> UInt64 { UInt64(counts[Int(reason.rawValue)]) }

    var total: UInt64 {
        var sum: UInt64 = 0
        for reason in DropReason.allCases { sum += self[reason] }
        return sum
    }

    /// In the order of the cases.
    var figures: [BrokerFigures.Count] {
        DropReason.allCases.map { BrokerFigures.Count($0.name, self[$0]) }
    }
}
