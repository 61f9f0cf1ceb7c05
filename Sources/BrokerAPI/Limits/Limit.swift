/// A limit that an operator sets, counted whenever a client meets it.
public enum Limit: UInt8, CountLabel, BitwiseCopyable {
    case connectTimeout
    case maxKeepAlive
    case maxConnectPacket
    case maxPacket
    case maxTopicLevels
    case maxSubscriptions
    case maxInFlight
    case maxInboundQoS2
    case maxUnacknowledgedPublishes
    case maxUnacknowledgedBytes
    case queueMessages
    case queueBytes
    case maxSessions
    case maxRetained
    case retainedBytes
    case sessionExpiry
    case maxConnections
    /// Without a key: the limit of open files (ulimit -n).
    case openFiles
    case outputBytes
    case maxHandshakes
    /// Without a key: filters of one SUBSCRIBE.
    case subscribeFilters
    /// Without a key: bytes that wait for the disk, ``BrokerLimits/storeBacklogBytes``.
    case storeBacklog
    case connectionsPerAddress
    case connectRate
    case connectRatePerAddress
    case handshakesPerAddress
    case memory
    case unfinishedBytes
    /// Without a key: filters of one UNSUBSCRIBE.
    case unsubscribeFilters
    /// Without a key: a filter `$share/...` without group or filter.
    case sharedFilter
    case maxClientID
    case maxUserName
    case subscriptionBytes
    case sessionBytes
    case sessionBytesPerUser
    case lockoutAttempts
    case lockoutAttemptsPerAddress

    public var name: String {
        switch self {
        case .connectTimeout: "connect_timeout"
        case .maxKeepAlive: "max_keep_alive"
        case .maxConnectPacket: "max_connect_packet"
        case .maxPacket: "max_packet"
        case .maxTopicLevels: "max_topic_levels"
        case .maxSubscriptions: "max_subscriptions"
        case .maxInFlight: "max_in_flight"
        case .maxInboundQoS2: "max_inbound_qos2"
        case .maxUnacknowledgedPublishes: "max_unacknowledged_publishes"
        case .maxUnacknowledgedBytes: "max_unacknowledged_bytes"
        case .queueMessages: "queue_messages"
        case .queueBytes: "queue_bytes"
        case .maxSessions: "max_sessions"
        case .maxRetained: "max_retained"
        case .retainedBytes: "retained_bytes"
        case .sessionExpiry: "session_expiry"
        case .maxConnections: "max_connections"
        case .openFiles: "open_files"
        case .outputBytes: "output_bytes"
        case .maxHandshakes: "max_handshakes"
        case .subscribeFilters: "subscribe_filters"
        case .storeBacklog: "store_backlog"
        case .connectionsPerAddress: "connections_per_address"
        case .connectRate: "connect_rate"
        case .connectRatePerAddress: "connect_rate_per_address"
        case .handshakesPerAddress: "handshakes_per_address"
        case .memory: "memory"
        case .unfinishedBytes: "unfinished_bytes"
        case .unsubscribeFilters: "unsubscribe_filters"
        case .sharedFilter: "shared_filter"
        case .maxClientID: "max_client_id"
        case .maxUserName: "max_user_name"
        case .subscriptionBytes: "subscription_bytes"
        case .sessionBytes: "session_bytes"
        case .sessionBytesPerUser: "session_bytes_per_user"
        case .lockoutAttempts: "lockout_attempts"
        case .lockoutAttemptsPerAddress: "lockout_attempts_per_address"
        }
    }

    /// The configuration key that raises it; `nil` without one.
    public var key: String? {
        switch self {
        case .openFiles, .subscribeFilters, .storeBacklog, .unsubscribeFilters, .sharedFilter: nil
        default: "limits.\(name)"
        }
    }
}
