/// One client as lists show it: a live connection, or a session that waits for its client.
package struct ClientSummary: Codable, Sendable, Equatable {
    package var clientID: String
    package var userName: String?
    package var connected: Bool
    /// Peer address and port; `nil` while away.
    package var address: String?
    /// "3.1" or "3.1.1".
    package var protocolVersion: String
    package var cleanSession: Bool
    /// As the client asked; 0 is "none".
    package var keepAliveSeconds: Int
    /// UNIX time in milliseconds of the current connection, or of the last disconnection.
    package var sinceMs: Int64
    package var subscriptions: Int
    /// Sent, and not yet acknowledged.
    package var inFlight: Int
    /// Waiting behind the in-flight window.
    package var queued: Int
    package var queuedBytes: Int

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case userName = "user_name"
        case connected, address
        case protocolVersion = "protocol"
        case cleanSession = "clean_session"
        case keepAliveSeconds = "keep_alive_s"
        case sinceMs = "since_ms"
        case subscriptions
        case inFlight = "in_flight"
        case queued
        case queuedBytes = "queued_bytes"
    }

    package init(
        clientID: String, userName: String?, connected: Bool, address: String?,
        protocolVersion: String, cleanSession: Bool, keepAliveSeconds: Int, sinceMs: Int64,
        subscriptions: Int, inFlight: Int, queued: Int, queuedBytes: Int
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
    }
}

/// A page of a list in the order of client identifiers, by their bytes; `next` continues it. A client
/// that stays is on one page, whoever comes and goes meanwhile.
package struct ClientPage: Codable, Sendable, Equatable {
    package var clients: [ClientSummary]
    /// Pass as `cursor` for the next page; `nil` at the end.
    package var next: String?

    package init(clients: [ClientSummary], next: String?) {
        self.clients = clients
        self.next = next
    }
}
