/// One client in a list: connected, or an offline session.
public struct ClientSummary: Codable, Sendable, Equatable {
    public var clientID: String
    public var userName: String?
    public var connected: Bool
    /// Peer address and port; `nil` while offline.
    public var address: String?
    /// "3.1" or "3.1.1".
    public var protocolVersion: String
    public var cleanSession: Bool
    /// Seconds, as in CONNECT; 0 means none.
    public var keepAliveSeconds: Int
    /// UNIX time in milliseconds of the current connection, or of the last disconnection.
    public var sinceMs: Int64
    public var subscriptions: Int
    /// Messages sent and not acknowledged.
    public var inFlight: Int
    /// Messages waiting for the in-flight window.
    public var queued: Int
    public var queuedBytes: Int
    /// Messages that it has lost since its session began.
    public var dropped: UInt64

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case userName = "user_name"
        case connected, address
        case protocolVersion = "protocol"
        case cleanSession = "clean_session"
        case keepAliveSeconds = "keep_alive_s"
        case sinceMs = "since_at_ms"
        case subscriptions
        case inFlight = "in_flight"
        case queued
        case queuedBytes = "queued_bytes"
        case dropped = "messages_dropped"
    }

    public init(
        clientID: String, userName: String?, connected: Bool, address: String?,
        protocolVersion: String, cleanSession: Bool, keepAliveSeconds: Int, sinceMs: Int64,
        subscriptions: Int, inFlight: Int, queued: Int, queuedBytes: Int, dropped: UInt64
    ) {
        self.clientID = clientID
        self.userName = userName
        self.connected = connected
        self.address = address
        self.protocolVersion = protocolVersion
        self.cleanSession = cleanSession
        self.keepAliveSeconds = keepAliveSeconds
        self.sinceMs = sinceMs
        self.subscriptions = subscriptions
        self.inFlight = inFlight
        self.queued = queued
        self.queuedBytes = queuedBytes
        self.dropped = dropped
    }
}

/// A page of clients in the order of their identifiers' bytes; `next` continues it. A client that
/// exists throughout is on exactly one page.
public struct ClientPage: Codable, Sendable, Equatable {
    public var clients: [ClientSummary]
    /// The `cursor` of the next page; `nil` at the end.
    public var next: String?

    public init(clients: [ClientSummary], next: String?) {
        self.clients = clients
        self.next = next
    }
}
