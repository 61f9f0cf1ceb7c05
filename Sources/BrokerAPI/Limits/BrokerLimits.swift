/// The limits of a broker: the configuration fills them, and the data plane keeps to them. A reload
/// replaces them as a whole. docs/configuration.md has the meaning of each, and docs/limits.md what
/// happens at it; ``Limit`` names the one that was met.
package struct BrokerLimits: Sendable, Equatable {
    /// From accept to a complete CONNECT.
    package var connectTimeout: Duration = .seconds(10)
    /// Binds clients that ask for a longer keep alive, or for none; `nil` leaves them alone.
    package var maxKeepAlive: Duration?
    /// Bytes of the first packet, before CONNECT is accepted.
    package var maxConnectPacketBytes = 330 * 1024
    /// Bytes of a whole packet; at most 256 MiB.
    package var maxPacketBytes = 1024 * 1024
    package var maxTopicLevels = 128
    /// Subscriptions of one session; a filter counts once for every eight of its levels.
    package var maxSubscriptions: UInt32 = 100_000
    /// Outgoing QoS 1 and 2 messages without their final acknowledgement, per client; 1 to 65,535.
    package var maxInFlight: UInt32 = 20
    /// Inbound QoS 2 identifiers without their PUBREL, per session.
    package var maxInboundQoS2: UInt32 = 1_000
    /// PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets of one client that await our acknowledgement: above
    /// it we stop reading.
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
    /// `nil` takes what the descriptor limit leaves after a reserve.
    package var maxConnections: Int?
    /// Connections of one address at a time.
    package var connectionsPerAddress = AddressLimit.auto
    /// Connections accepted in a second; `nil` accepts as fast as they come.
    package var connectRate: Int? = 10_000
    /// Of one address in a second.
    package var connectRatePerAddress = AddressLimit.auto
    /// TLS handshakes at a time.
    package var maxHandshakes = 1_000
    /// Of one address at a time.
    package var handshakesPerAddress = AddressLimit.auto
    /// Private memory of the process, above which connections are given up.
    package var memory = MemoryLimit.auto
    /// Unfinished packets of all connections together.
    package var unfinishedBytes = 128 * 1024 * 1024
    /// Unsent bytes of one connection above which QoS 0 is dropped and QoS 1 and 2 wait.
    package var outputBytes = 1024 * 1024
    /// How long a stop waits for unsent output.
    package var drainTimeout: Duration = .seconds(5)

    /// Bytes of records that wait for the disk; no key sets it. A working disk is never so far behind, and
    /// one that hangs makes the process no larger than this.
    package var storeBacklogBytes = 32 * 1024 * 1024

    package init() {}

    /// ``maxConnections`` as a number; no bound as long as `auto` has not been replaced.
    package var mostConnections: Int { maxConnections ?? .max }

    /// ``memory`` as a number; `nil` is no limit.
    package var memoryBytes: Int? {
        guard case .bytes(let bytes) = memory else { return nil }
        return bytes
    }

    /// What one peer address may have of something: an IPv4 address, or the /64 network of an IPv6 one.
    package enum AddressLimit: Sendable, Equatable {
        /// Half of what all together may have; without a limit on a loopback address.
        case auto
        case off
        case number(Int)
    }

    /// How much memory the process may use.
    package enum MemoryLimit: Sendable, Equatable {
        /// 80 % of what its control group or the machine has.
        case auto
        case off
        case bytes(Int)
    }

    package enum QueuePolicy: String, Sendable, Equatable, CaseIterable {
        case dropOldest = "drop_oldest"
        case dropNewest = "drop_newest"
    }
}
