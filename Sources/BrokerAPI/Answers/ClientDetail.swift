/// One client in full: in JSON the members of the list's ``ClientSummary``, with these beside them.
public struct ClientDetail: Sendable, Equatable {
    /// Subscriptions in ``subscriptionList``, ...
    public static let mostListed = 1_000
    /// ... and bytes of their filters, which the last one may exceed.
    public static let mostListedBytes = 512 * 1_024

    public var summary: ClientSummary
    /// The first subscriptions of the client; ``ClientSummary/subscriptions`` counts all of them.
    public var subscriptionList: [ClientSubscription]
    /// Bytes that the session counts for `limits.session_bytes`.
    public var sessionBytes: Int
    /// Topic of this connection's will; `nil` without one.
    public var willTopic: String?
    /// Milliseconds since the last complete packet; `nil` while offline.
    public var lastPacketMsAgo: Int64?
    /// Received QoS 2 identifiers without PUBREL.
    public var inboundQoS2: Int
    /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of this client without acknowledgement.
    public var unacknowledgedPublishes: Int
    /// Unsent bytes of output.
    public var unsentBytes: Int
    /// True while the client is not read, because too much from it waits.
    public var readingPaused: Bool
    public var publishesReceived: UInt64
    public var publishesSent: UInt64
    /// The part of ``publishesSent`` with QoS 0, the message's or its subscription's, which nobody
    /// acknowledges.
    public var publishesSentQoS0: UInt64
    public var publishesAcknowledged: UInt64
    /// Messages lost by this session, by reason.
    public var dropped: [String: UInt64]
    /// The reason for which the last connection ended; `nil` without one.
    public var lastDisconnectReason: String?
    /// Repeated take-overs by two peers; `nil` without any.
    public var takeOvers: RepeatedTakeOvers?
    /// Seconds of silence before this connection's last PINGREQ; `nil` before the first.
    public var heartbeatSeconds: Int?
    /// The client's newest report; `nil` without one.
    public var report: ClientReport?
    /// The client's devices and their wakes; `nil` without any.
    public var devices: [DeviceModel]?

    enum CodingKeys: String, CodingKey {
        case subscriptionList = "subscription_list"
        case sessionBytes = "session_bytes"
        case willTopic = "will_topic"
        case lastPacketMsAgo = "last_packet_ms_ago"
        case inboundQoS2 = "inbound_qos2"
        case unacknowledgedPublishes = "unacknowledged_publishes"
        case unsentBytes = "unsent_bytes"
        case readingPaused = "reading_paused"
        case publishesReceived = "publishes_received"
        case publishesSent = "publishes_sent"
        case publishesSentQoS0 = "publishes_sent_qos0"
        case publishesAcknowledged = "publishes_acknowledged"
        case dropped
        case lastDisconnectReason = "last_disconnect_reason"
        case takeOvers = "take_overs"
        case heartbeatSeconds = "heartbeat_seconds"
        case report, devices
    }

    public init(
        summary: ClientSummary, subscriptionList: [ClientSubscription], sessionBytes: Int,
        willTopic: String?, lastPacketMsAgo: Int64?, inboundQoS2: Int, unacknowledgedPublishes: Int,
        unsentBytes: Int, readingPaused: Bool, publishesReceived: UInt64, publishesSent: UInt64,
        publishesSentQoS0: UInt64 = 0, publishesAcknowledged: UInt64, dropped: [String: UInt64],
        lastDisconnectReason: String?, takeOvers: RepeatedTakeOvers? = nil,
        heartbeatSeconds: Int? = nil, report: ClientReport? = nil, devices: [DeviceModel]? = nil
    ) {
        self.summary = summary
        self.subscriptionList = subscriptionList
        self.sessionBytes = sessionBytes
        self.willTopic = willTopic
        self.lastPacketMsAgo = lastPacketMsAgo
        self.inboundQoS2 = inboundQoS2
        self.unacknowledgedPublishes = unacknowledgedPublishes
        self.unsentBytes = unsentBytes
        self.readingPaused = readingPaused
        self.publishesReceived = publishesReceived
        self.publishesSent = publishesSent
        self.publishesSentQoS0 = publishesSentQoS0
        self.publishesAcknowledged = publishesAcknowledged
        self.dropped = dropped
        self.lastDisconnectReason = lastDisconnectReason
        self.takeOvers = takeOvers
        self.heartbeatSeconds = heartbeatSeconds
        self.report = report
        self.devices = devices
    }
}

/// Two peers that keep taking over one client identifier from each other.
public struct RepeatedTakeOvers: Codable, Sendable, Equatable {
    /// Take-overs since the last minute without one.
    public var count: Int
    /// Delay of the next take-over.
    public var delayMs: Int64
    /// Addresses of both at the last delayed take-over: the connected peer, then the waiting one.
    public var peers: [String]
    /// Address of the waiting peer; `nil` when none waits.
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

public struct ClientSubscription: Codable, Sendable, Equatable {
    public var filter: String
    public var qos: Int

    public init(filter: String, qos: Int) {
        self.filter = filter
        self.qos = qos
    }
}
