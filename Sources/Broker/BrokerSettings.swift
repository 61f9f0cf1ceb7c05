import TLS
import Transport

/// What an operator decides for a broker; the meaning of each limit stands in `docs/configuration.md`.
package struct BrokerSettings: Sendable {
    package struct Listener: Sendable {
        package var address: String
        package var port: UInt16
        package var allowsAnonymous: Bool
        /// What its handshakes begin with; `nil` serves plain TCP.
        package var tls: TLSContext?
        /// Whose connections begin with a header of the PROXY protocol.
        package var proxies: [PeerNetwork]

        package init(
            address: String, port: UInt16, allowsAnonymous: Bool, tls: TLSContext? = nil,
            proxies: [PeerNetwork] = []
        ) {
            self.address = address
            self.port = port
            self.allowsAnonymous = allowsAnonymous
            self.tls = tls
            self.proxies = proxies
        }
    }

    /// How much of something one peer address may have.
    package enum AddressLimit: Sendable {
        /// Half of what all together may have; on this machine as much as there is.
        case auto
        case off
        case number(Int)
    }

    package enum QueuePolicy: Sendable {
        case dropOldest, dropNewest
    }

    package var listeners: [Listener] = []
    package var connectTimeout: Duration = .seconds(10)
    package var maxKeepAlive: Duration?
    package var maxConnectPacketBytes = 330 * 1_024
    package var maxPacketBytes = 1_024 * 1_024
    package var maxTopicLevels = 128
    /// Of one session; a filter counts once for every eight of its levels.
    package var maxSubscriptions: UInt32 = 100_000
    package var maxInFlight: UInt32 = 20
    package var maxInboundQoS2: UInt32 = 1_000
    package var maxUnacknowledgedPublishes = 1_000
    package var maxUnacknowledgedPublishBytes = 4 * 1_024 * 1_024
    package var queueMessages: UInt32 = 1_000
    package var queueBytes = 8 * 1_024 * 1_024
    package var queuePolicy = QueuePolicy.dropOldest
    package var maxSessions = 1_000_000
    /// Retained messages; a topic counts once for every eight of its levels.
    package var maxRetained = 1_000_000
    /// Of their PUBLISH packets together.
    package var retainedBytes = 256 * 1_024 * 1_024
    package var sessionExpiry: Duration = .seconds(14 * 86_400)
    package var maxConnections = 10_000
    package var connectionsPerAddress = AddressLimit.auto
    /// Connections accepted in a second; `nil` is no limit.
    package var connectRate: Int? = 10_000
    package var connectRatePerAddress = AddressLimit.auto
    /// TLS handshakes at a time.
    package var maxHandshakes = 1_000
    package var handshakesPerAddress = AddressLimit.auto
    /// Private memory of the process above which connections are given up; `nil` is no limit.
    package var memoryBytes: Int?
    /// Unfinished packets of all connections together.
    package var unfinishedBytes = 128 * 1_024 * 1_024
    package var outputBytes = 1_024 * 1_024
    /// Records that wait for the disk; no setting of an operator's. A working disk is never so far behind,
    /// and one that hangs makes the process no larger than this.
    package var storeBacklogBytes = 32 * 1_024 * 1_024
    package var drainTimeout: Duration = .seconds(5)
    /// Unacknowledged output ends a connection after this long.
    package var userTimeout: Duration = .seconds(60)

    /// How often `$SYS/broker/...` is published; zero turns these topics off.
    package var systemTopicInterval: Duration = .seconds(10)

    package init() {}

    /// Takes all limits of `other`; listeners and intervals, which are set up once, stay.
    package mutating func takeLimits(of other: BrokerSettings) {
        var taken = other
        taken.listeners = listeners
        taken.userTimeout = userTimeout
        taken.systemTopicInterval = systemTopicInterval
        self = taken
    }
}
