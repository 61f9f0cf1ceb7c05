/// Answer of `GET /v1/status`. Counters run since the start.
public struct BrokerStatus: Codable, Sendable, Equatable {
    public var version: String
    public var startedAtMs: Int64
    public var uptimeSeconds: Int64
    /// "none", "interval" or "sync".
    public var durability: String
    /// Milliseconds of data that a power failure may lose; `nil` unless `durability` is "interval".
    public var durabilityIntervalMs: Int?
    /// Addresses that accept MQTT, with their actual ports.
    public var listeners: [String]
    public var connections: Int
    /// Connections without CONNACK.
    public var connectionsPending: Int
    public var connectionsTotal: UInt64
    public var connectionsRefused: UInt64
    public var sessions: Int
    public var persistentSessions: Int
    /// Bytes that the sessions count for `limits.session_bytes`, and that limit; `nil` without one.
    public var sessionBytes: Int
    public var sessionBytesLimit: Int?
    public var subscriptions: Int
    public var retained: Int
    public var queued: Int
    public var queuedBytes: Int
    public var inFlight: Int
    public var publishesReceived: UInt64
    public var publishesSent: UInt64
    public var bytesReceived: UInt64
    public var bytesSent: UInt64
    /// Lost messages, by reason.
    public var dropped: [String: UInt64]
    public var protocolViolations: UInt64
    /// Number of times each limit was met, by its key below `limits`.
    public var limitsReached: [String: UInt64]
    /// Clients that are not read at the moment.
    public var publishersPaused: Int
    /// `nil` if the broker does not report it.
    public var memory: MemoryFigures?
    /// `nil` unless the broker is drained.
    public var drain: DrainStatus?
    /// `nil` with `durability: none`.
    public var store: StoreStatus?
    /// `nil` without a webhook.
    public var webhook: WebhookFigures?
    /// `nil` when no service is asked about logins.
    public var loginService: LoginServiceFigures?
    /// Apple's push service; `nil` without it.
    public var apns: PushFigures?
    /// The sender to Google; `nil` without `wakes.fcm`.
    public var fcm: PushFigures?
    /// `nil` when nobody has asked for one.
    public var reload: LastReload?

    enum CodingKeys: String, CodingKey {
        case version
        case startedAtMs = "started_at_ms"
        case uptimeSeconds = "uptime_s"
        case durability
        case durabilityIntervalMs = "durability_interval_ms"
        case listeners, connections
        case connectionsPending = "connections_pending"
        case connectionsTotal = "connections_total"
        case connectionsRefused = "connections_refused"
        case sessions
        case persistentSessions = "persistent_sessions"
        case sessionBytes = "session_bytes"
        case sessionBytesLimit = "session_bytes_limit"
        case subscriptions, retained, queued
        case queuedBytes = "queued_bytes"
        case inFlight = "in_flight"
        case publishesReceived = "publishes_received"
        case publishesSent = "publishes_sent"
        case bytesReceived = "bytes_received"
        case bytesSent = "bytes_sent"
        case dropped
        case protocolViolations = "protocol_violations"
        case limitsReached = "limits_reached"
        case publishersPaused = "publishers_paused"
        case memory, drain, store, webhook, apns, fcm, reload
        case loginService = "login_service"
    }

    /// The reason for which `GET /readyz` answers 503; `nil` when it answers 200.
    public var notReadyReason: String? {
        store?.notReadyReason ?? (drain == nil ? nil : DrainStatus.notReadyReason)
    }

    /// The figures that the answer shows; `store` is `nil`.
    public init(
        _ figures: BrokerFigures, durabilityIntervalMs: Int? = nil, listeners: [String] = []
    ) {
        version = figures.version
        startedAtMs = figures.startedAtMs
        uptimeSeconds = Int64(figures.uptimeSeconds)
        durability = figures.durability
        self.durabilityIntervalMs = durabilityIntervalMs
        self.listeners = listeners
        connections = figures.connections
        connectionsPending = figures.connectionsPending
        connectionsTotal = figures.connectionsOpened
        connectionsRefused = figures.connectionsRefused
        sessions = figures.sessions
        persistentSessions = figures.persistentSessions
        sessionBytes = figures.sessionBytes
        sessionBytesLimit = figures.sessionBytesLimit
        subscriptions = figures.subscriptions + figures.sharedSubscriptions
        retained = figures.retained
        queued = figures.queued
        queuedBytes = figures.queuedBytes
        inFlight = figures.inFlight
        publishesReceived = figures.publishesReceived.total
        publishesSent = figures.publishesSent.total
        bytesReceived = figures.bytesReceived
        bytesSent = figures.bytesSent
        dropped = figures.dropped.byLabel
        protocolViolations = figures.protocolViolations
        limitsReached = figures.limitsReached.byLabel
        publishersPaused = figures.publishersPaused
        memory = figures.memory
    }
}
