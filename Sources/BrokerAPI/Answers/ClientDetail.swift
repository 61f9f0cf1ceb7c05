/// The details of one client.
package struct ClientDetail: Codable, Sendable, Equatable {
    package var summary: ClientSummary
    package var subscriptionList: [ClientSubscription]
    /// Topic of this connection's will; `nil` without one.
    package var willTopic: String?
    /// Milliseconds since the last complete packet; `nil` while offline.
    package var lastPacketMsAgo: Int64?
    /// Received QoS 2 identifiers without PUBREL.
    package var inboundQoS2: Int
    /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of this client without acknowledgement.
    package var unacknowledgedPublishes: Int
    /// Unsent bytes of output.
    package var unsentBytes: Int
    /// True while the client is not read, because too much from it waits.
    package var readingPaused: Bool
    package var publishesReceived: UInt64
    package var publishesSent: UInt64
    package var publishesAcknowledged: UInt64
    /// Messages lost by this session, by reason.
    package var dropped: [String: UInt64]
    /// The reason for which the last connection ended; `nil` without one.
    package var lastDisconnectReason: String?
    /// Repeated take-overs by two peers; `nil` without any.
    package var takeOvers: RepeatedTakeOvers?

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

    package init(
        summary: ClientSummary, subscriptionList: [ClientSubscription], willTopic: String?,
        lastPacketMsAgo: Int64?, inboundQoS2: Int, unacknowledgedPublishes: Int,
        unsentBytes: Int, readingPaused: Bool, publishesReceived: UInt64, publishesSent: UInt64,
        publishesAcknowledged: UInt64, dropped: [String: UInt64], lastDisconnectReason: String?,
        takeOvers: RepeatedTakeOvers? = nil
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

/// Two peers that keep taking over one client identifier from each other.
package struct RepeatedTakeOvers: Codable, Sendable, Equatable {
    /// Take-overs since the last minute without one.
    package var count: Int
    /// Delay of the next take-over.
    package var delayMs: Int64
    /// Addresses of both at the last delayed take-over: the connected peer, then the waiting one.
    package var peers: [String]
    /// Address of the waiting peer; `nil` when none waits.
    package var waiting: String?

    enum CodingKeys: String, CodingKey {
        case count
        case delayMs = "delay_ms"
        case peers, waiting
    }

    package init(count: Int, delayMs: Int64, peers: [String], waiting: String?) {
        self.count = count
        self.delayMs = delayMs
        self.peers = peers
        self.waiting = waiting
    }
}

package struct ClientSubscription: Codable, Sendable, Equatable {
    package var filter: String
    package var qos: Int

    package init(filter: String, qos: Int) {
        self.filter = filter
        self.qos = qos
    }
}
