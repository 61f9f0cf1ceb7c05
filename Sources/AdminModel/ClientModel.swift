/// One client as lists show it: a live connection, or a session that waits for its client.
public struct ClientSummary: Codable, Sendable, Equatable {
    public var clientID: String
    public var userName: String?
    public var connected: Bool
    /// Peer address and port; `nil` while away.
    public var address: String?
    /// "3.1" or "3.1.1".
    public var protocolVersion: String
    public var cleanSession: Bool
    /// As the client asked; 0 is "none".
    public var keepAliveSeconds: Int
    /// UNIX time in milliseconds of the current connection, or of the last disconnection.
    public var sinceMs: Int64
    public var subscriptions: Int
    /// Sent, and not yet acknowledged.
    public var inFlight: Int
    /// Waiting behind the in-flight window.
    public var queued: Int
    public var queuedBytes: Int

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

    public init(
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

/// One client in full.
public struct ClientDetail: Codable, Sendable, Equatable {
    public var summary: ClientSummary
    public var subscriptionList: [SubscriptionModel]
    /// Topic of the will that this connection left; `nil` without one.
    public var willTopic: String?
    /// Milliseconds since the last complete packet; `nil` while away.
    public var lastPacketMsAgo: Int64?
    /// QoS 2 identifiers received and not yet released.
    public var inboundQoS2: Int
    /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of this client that await our acknowledgement.
    public var unacknowledgedPublishes: Int
    /// Bytes we could not send yet.
    public var unsentBytes: Int
    /// True while we do not read from it because too much of what it sent waits.
    public var readingPaused: Bool
    public var publishesReceived: UInt64
    public var publishesSent: UInt64
    public var publishesAcknowledged: UInt64
    /// Messages this session lost, by reason.
    public var dropped: [String: UInt64]
    /// Why the last connection ended; `nil` when there was none before.
    public var lastDisconnectReason: String?
    /// Two peers throw each other out; `nil` when there are none.
    public var takeOvers: TakeOverModel?

    enum CodingKeys: String, CodingKey {
        case summary
        case subscriptionList = "subscription_list"
        case willTopic = "will_topic"
        case lastPacketMsAgo = "last_packet_ms_ago"
        case inboundQoS2 = "inbound_qos2"
        case unacknowledgedPublishes = "unacknowledged_publishes"
        case unsentBytes = "unsent_bytes"
        case readingPaused = "reading_paused"
        case publishesReceived = "publishes_received"
        case publishesSent = "publishes_sent"
        case publishesAcknowledged = "publishes_acknowledged"
        case dropped
        case lastDisconnectReason = "last_disconnect_reason"
        case takeOvers = "take_overs"
    }

    public init(
        summary: ClientSummary, subscriptionList: [SubscriptionModel], willTopic: String?,
        lastPacketMsAgo: Int64?, inboundQoS2: Int, unacknowledgedPublishes: Int,
        unsentBytes: Int, readingPaused: Bool, publishesReceived: UInt64, publishesSent: UInt64,
        publishesAcknowledged: UInt64, dropped: [String: UInt64], lastDisconnectReason: String?,
        takeOvers: TakeOverModel? = nil
    ) {
        self.summary = summary
        self.subscriptionList = subscriptionList
        self.willTopic = willTopic
        self.lastPacketMsAgo = lastPacketMsAgo
        self.inboundQoS2 = inboundQoS2
        self.unacknowledgedPublishes = unacknowledgedPublishes
        self.unsentBytes = unsentBytes
        self.readingPaused = readingPaused
        self.publishesReceived = publishesReceived
        self.publishesSent = publishesSent
        self.publishesAcknowledged = publishesAcknowledged
        self.dropped = dropped
        self.lastDisconnectReason = lastDisconnectReason
        self.takeOvers = takeOvers
    }
}

/// Two peers have one client identifier and throw each other out again and again.
public struct TakeOverModel: Codable, Sendable, Equatable {
    /// Take-overs since the last quiet minute.
    public var count: Int
    /// How long the next one waits.
    public var delayMs: Int64
    /// Addresses of the two when the last one had to wait: who was connected, and who waited.
    public var peers: [String]
    /// Address of the one who waits now; `nil` when nobody does.
    public var waiting: String?

    enum CodingKeys: String, CodingKey {
        case count
        case delayMs = "delay_ms"
        case peers, waiting
    }

    public init(count: Int, delayMs: Int64, peers: [String], waiting: String?) {
        self.count = count
        self.delayMs = delayMs
        self.peers = peers
        self.waiting = waiting
    }
}

public struct SubscriptionModel: Codable, Sendable, Equatable {
    public var filter: String
    public var qos: Int

    public init(filter: String, qos: Int) {
        self.filter = filter
        self.qos = qos
    }
}

/// A page of a list in the order of client identifiers, by their bytes; `next` continues it. A client
/// that stays is on one page, whoever comes and goes meanwhile.
public struct ClientPage: Codable, Sendable, Equatable {
    public var clients: [ClientSummary]
    /// Pass as `cursor` for the next page; `nil` at the end.
    public var next: String?

    public init(clients: [ClientSummary], next: String?) {
        self.clients = clients
        self.next = next
    }
}

/// Which clients a list shows.
public struct ClientQuery: Codable, Sendable, Equatable {
    /// Only connected ones, or only those away; `nil` for both.
    public var connected: Bool?
    /// Only identifiers that begin with this.
    public var prefix: String?
    /// Only this user's.
    public var userName: String?
    /// 1 to 1,000.
    public var limit: Int
    /// The `next` of the page before.
    public var cursor: String?

    public init(
        connected: Bool? = nil, prefix: String? = nil, userName: String? = nil, limit: Int = 100,
        cursor: String? = nil
    ) {
        self.connected = connected
        self.prefix = prefix
        self.userName = userName
        self.limit = limit
        self.cursor = cursor
    }
}
