/// `GET /v1/status`: the broker at a glance. Counters run since the start.
public struct StatusModel: Codable, Sendable, Equatable {
    public var version: String
    public var startedAtMs: Int64
    public var uptimeSeconds: Int64
    /// "none", "interval" or "sync".
    public var durability: String
    /// What a power cut may take back, in milliseconds; `nil` unless `durability` is "interval".
    public var durabilityIntervalMs: Int?
    /// Addresses that accept MQTT, with the ports in use.
    public var listeners: [String]
    public var connections: Int
    /// Connections that wait for their CONNECT or for the password check.
    public var connectionsPending: Int
    public var connectionsTotal: UInt64
    public var connectionsRefused: UInt64
    public var sessions: Int
    public var persistentSessions: Int
    public var subscriptions: Int
    public var retained: Int
    public var queued: Int
    public var queuedBytes: Int
    public var inFlight: Int
    public var publishesReceived: UInt64
    public var publishesSent: UInt64
    public var bytesReceived: UInt64
    public var bytesSent: UInt64
    /// Messages given up, by reason.
    public var dropped: [String: UInt64]
    public var protocolViolations: UInt64
    /// How often limits were met, by the keys below `limits` in the configuration.
    public var limitsReached: [String: UInt64]
    /// Clients that are not read at present.
    public var publishersPaused: Int
    /// `nil` of a broker that does not tell.
    public var memory: MemoryModel?
    /// `nil` with `durability: none`.
    public var store: StoreModel?

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
        case memory, store
    }

    public init(
        version: String, startedAtMs: Int64, uptimeSeconds: Int64, durability: String,
        durabilityIntervalMs: Int? = nil, listeners: [String], connections: Int,
        connectionsPending: Int,
        connectionsTotal: UInt64, connectionsRefused: UInt64, sessions: Int,
        persistentSessions: Int, subscriptions: Int, retained: Int, queued: Int,
        queuedBytes: Int, inFlight: Int, publishesReceived: UInt64, publishesSent: UInt64,
        bytesReceived: UInt64, bytesSent: UInt64, dropped: [String: UInt64],
        protocolViolations: UInt64, limitsReached: [String: UInt64] = [:],
        publishersPaused: Int = 0, memory: MemoryModel? = nil, store: StoreModel? = nil
    ) {
        self.version = version
        self.startedAtMs = startedAtMs
        self.uptimeSeconds = uptimeSeconds
        self.durability = durability
        self.durabilityIntervalMs = durabilityIntervalMs
        self.listeners = listeners
        self.connections = connections
        self.connectionsPending = connectionsPending
        self.connectionsTotal = connectionsTotal
        self.connectionsRefused = connectionsRefused
        self.sessions = sessions
        self.persistentSessions = persistentSessions
        self.subscriptions = subscriptions
        self.retained = retained
        self.queued = queued
        self.queuedBytes = queuedBytes
        self.inFlight = inFlight
        self.publishesReceived = publishesReceived
        self.publishesSent = publishesSent
        self.bytesReceived = bytesReceived
        self.bytesSent = bytesSent
        self.dropped = dropped
        self.protocolViolations = protocolViolations
        self.limitsReached = limitsReached
        self.publishersPaused = publishersPaused
        self.memory = memory
        self.store = store
    }
}

/// How the broker does with its memory.
public struct MemoryModel: Codable, Sendable, Equatable {
    /// Resident memory of the process that it shares with nobody.
    public var usedBytes: Int
    /// Above it connections are given up; `nil` without a limit.
    public var limitBytes: Int?
    /// "none", "newcomers", "publishers" or "readers": what is given up at present.
    public var pressure: String
    /// Buffers of unfinished packets, of all connections together.
    public var unfinishedBytes: Int

    enum CodingKeys: String, CodingKey {
        case usedBytes = "used_bytes"
        case limitBytes = "limit_bytes"
        case pressure
        case unfinishedBytes = "unfinished_bytes"
    }

    public init(
        usedBytes: Int = 0, limitBytes: Int? = nil, pressure: String = "none",
        unfinishedBytes: Int = 0
    ) {
        self.usedBytes = usedBytes
        self.limitBytes = limitBytes
        self.pressure = pressure
        self.unfinishedBytes = unfinishedBytes
    }
}
