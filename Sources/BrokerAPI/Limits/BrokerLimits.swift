/// The limits of a broker; a reload replaces all of them. docs/configuration.md describes each,
/// docs/limits.md the behaviour at it; ``Limit`` names the one that was met.
package struct BrokerLimits: Sendable, Equatable {
    /// From accept to a complete CONNECT.
    package var connectTimeout: Duration = .seconds(10)
    /// Largest keep alive, also for clients that ask for none; `nil` means unlimited.
    package var maxKeepAlive: Duration?
    /// Bytes of the first packet, before CONNECT is accepted.
    package var maxConnectPacketBytes = 330 * 1024
    /// Bytes of a whole packet; at most 256 MiB.
    package var maxPacketBytes = 1024 * 1024
    package var maxTopicLevels = 128
    /// Subscriptions of one session; a filter counts once for every eight of its levels.
    package var maxSubscriptions: UInt32 = 100_000
    /// Outbound QoS 1 and 2 messages without their final acknowledgement, per client; 1 to 65,535.
    package var maxInFlight: UInt32 = 20
    /// Inbound QoS 2 identifiers without their PUBREL, per session.
    package var maxInboundQoS2: UInt32 = 1_000
    /// Unacknowledged PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets after which a client is not read.
    package var maxUnacknowledgedPublishes = 1_000
    package var maxUnacknowledgedPublishBytes = 4 * 1024 * 1024
    /// Messages, and their bytes, that wait in one session.
    package var queueMessages: UInt32 = 1_000
    package var queueBytes = 8 * 1024 * 1024
    package var queuePolicy = QueuePolicy.dropOldest
    package var maxSessions = 1_000_000
    /// Retained messages, and their bytes; a topic counts once for every eight of its levels.
    package var maxRetained = 1_000_000
    package var retainedBytes = 256 * 1024 * 1024
    /// From disconnection to removal of a persistent session.
    package var sessionExpiry: Duration = .seconds(14 * 86_400)
    /// `nil` takes the descriptor limit less a reserve.
    package var maxConnections: Int?
    /// Connections of one address at a time.
    package var connectionsPerAddress = AddressLimit.auto
    /// Connections accepted per second; `nil` means unlimited.
    package var connectRate: Int? = 10_000
    /// Connections of one address per second.
    package var connectRatePerAddress = AddressLimit.auto
    /// TLS handshakes at a time.
    package var maxHandshakes = 1_000
    /// TLS handshakes of one address at a time.
    package var handshakesPerAddress = AddressLimit.auto
    /// Private memory of the process, above which the broker closes connections.
    package var memory = MemoryLimit.auto
    /// Incomplete packets of all connections together.
    package var unfinishedBytes = 128 * 1024 * 1024
    /// Unsent bytes of one connection above which QoS 0 is dropped and QoS 1 and 2 wait.
    package var outputBytes = 1024 * 1024
    /// Time for unsent output during a shutdown.
    package var drainTimeout: Duration = .seconds(5)

    /// Bytes of records that wait for the disk. It has no key: a working disk never reaches it, and
    /// it bounds the memory while a disk hangs.
    package var storeBacklogBytes = 32 * 1024 * 1024

    package init() {}

    /// ``maxConnections`` as a number; unlimited until `auto` is replaced.
    package var mostConnections: Int { maxConnections ?? .max }

    /// ``memory`` as a number; `nil` means unlimited.
    package var memoryBytes: Int? {
        guard case .bytes(let bytes) = memory else { return nil }
        return bytes
    }

    /// A limit per peer address: an IPv4 address, or the /64 network of an IPv6 address.
    package enum AddressLimit: Sendable, Equatable {
        /// Half of the limit for all addresses; unlimited for loopback.
        case auto
        case off
        case number(Int)
    }

    /// The limit of the process's memory.
    package enum MemoryLimit: Sendable, Equatable {
        /// 80 % of the memory of its control group or machine.
        case auto
        case off
        case bytes(Int)
    }

    package enum QueuePolicy: String, Sendable, Equatable, CaseIterable {
        case dropOldest = "drop_oldest"
        case dropNewest = "drop_newest"
    }
}
