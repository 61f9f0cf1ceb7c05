/// The clients to list.
public struct ClientQuery: Codable, Sendable, Equatable {
    /// What clients are sorted by.
    public enum Order: String, Codable, Sendable, CaseIterable {
        /// The bytes of the client identifiers.
        case clientID = "client_id"
        /// The longest connected or longest offline first.
        case since
        /// The most waiting messages first.
        case queued
        case queuedBytes = "queued_bytes"
        case inFlight = "in_flight"
        /// The most lost messages first.
        case dropped
        case subscriptions
    }

    /// True for connected clients only, false for offline ones; `nil` for both.
    public var connected: Bool?
    /// Prefix of the client identifiers.
    public var prefix: String?
    /// User name of the clients.
    public var userName: String?
    /// Connected clients with this address, or with one of this network (`10.1.0.0/16`).
    public var address: String?
    /// "3.1" or "3.1.1".
    public var protocolVersion: String?
    /// Clients whose connection or absence began before this UNIX time in milliseconds.
    public var beforeMs: Int64?
    /// Clients whose connection or absence began at this UNIX time in milliseconds, or later.
    public var fromMs: Int64?
    public var order: Order
    /// At most ``PageSize/largest``.
    public var limit: Int
    /// The `next` of the previous page.
    public var cursor: String?

    public init(
        connected: Bool? = nil, prefix: String? = nil, userName: String? = nil,
        address: String? = nil, protocolVersion: String? = nil, beforeMs: Int64? = nil,
        fromMs: Int64? = nil, order: Order = .clientID, limit: Int = PageSize.usual,
        cursor: String? = nil
    ) {
        self.connected = connected
        self.prefix = prefix
        self.userName = userName
        self.address = address
        self.protocolVersion = protocolVersion
        self.beforeMs = beforeMs
        self.fromMs = fromMs
        self.order = order
        self.limit = limit
        self.cursor = cursor
    }
}
