/// One client in full.
package struct ClientDetail: Codable, Sendable, Equatable {
    package var summary: ClientSummary
    package var subscriptionList: [ClientSubscription]
    /// Topic of the will that this connection left; `nil` without one.
    package var willTopic: String?
    /// Milliseconds since the last complete packet; `nil` while away.
    package var lastPacketMsAgo: Int64?
    /// QoS 2 identifiers received and not yet released.
    package var inboundQoS2: Int
    /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of this client that await our acknowledgement.
    package var unacknowledgedPublishes: Int
    /// Bytes we could not send yet.
    package var unsentBytes: Int
    /// True while we do not read from it because too much of what it sent waits.
    package var readingPaused: Bool
    package var publishesReceived: UInt64
    package var publishesSent: UInt64
    package var publishesAcknowledged: UInt64
    /// Messages this session lost, by reason.
    package var dropped: [String: UInt64]
    /// Why the last connection ended; `nil` when there was none before.
    package var lastDisconnectReason: String?
    /// Two peers throw each other out; `nil` when there are none.
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

/// Two peers have one client identifier and throw each other out again and again.
package struct RepeatedTakeOvers: Codable, Sendable, Equatable {
    /// Take-overs since the last quiet minute.
    package var count: Int
    /// How long the next one waits.
    package var delayMs: Int64
    /// Addresses of the two when the last one had to wait: who was connected, and who waited.
    package var peers: [String]
    /// Address of the one who waits now; `nil` when nobody does.
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
