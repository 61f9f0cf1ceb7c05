import TimeZones

/// The limits of a broker; a reload replaces all of them. docs/configuration.md describes each,
/// docs/limits.md the behaviour at it; ``Limit`` names the one that was met.
public struct BrokerLimits: Sendable, Equatable {
    /// From accept to a complete CONNECT.
    public var connectTimeout: Duration = .seconds(10)
    /// Largest keep alive, also for clients that ask for none; `nil` means unlimited.
    public var maxKeepAlive: Duration?
    /// Bytes of the first packet, before CONNECT is accepted.
    public var maxConnectPacketBytes = 330 * 1024
    /// Bytes of a whole packet; at most 256 MiB.
    public var maxPacketBytes = 1024 * 1024
    /// Bytes of a client identifier, and of a user name, of a session that does not exist yet.
    public var maxClientIDBytes = 1024
    public var maxUserNameBytes = 1024
    public var maxTopicLevels = 128
    /// Subscriptions of one session; a filter counts once for every eight of its levels.
    public var maxSubscriptions: UInt32 = 100_000
    /// Bytes that the subscriptions of one session count; see ``mostSubscriptionBytes``.
    public var subscriptionBytes = 64 * 1024 * 1024
    /// Outbound QoS 1 and 2 messages without their final acknowledgement, per client; 1 to 65,535.
    public var maxInFlight: UInt32 = 20
    /// Inbound QoS 2 identifiers without their PUBREL, per session.
    public var maxInboundQoS2: UInt32 = 1_000
    /// Unacknowledged PUBLISH, SUBSCRIBE and UNSUBSCRIBE packets after which a client is not read.
    public var maxUnacknowledgedPublishes = 1_000
    public var maxUnacknowledgedPublishBytes = 4 * 1024 * 1024
    /// Messages, and their bytes, that wait in one session.
    public var queueMessages: UInt32 = 1_000
    public var queueBytes = 8 * 1024 * 1024
    public var queuePolicy = QueuePolicy.dropOldest
    public var maxSessions = 1_000_000
    /// Bytes that all sessions together count: records, names, wills and subscriptions.
    public var sessionBytes = MemoryLimit.auto
    /// The same for the sessions of one proven user name.
    public var sessionBytesPerUser = MemoryLimit.auto
    /// Retained messages, and their bytes; a topic counts once for every eight of its levels.
    public var maxRetained = 1_000_000
    public var retainedBytes = 256 * 1024 * 1024
    /// Keys of messages from the admin plane that are kept for repeats; 0 for none.
    public var idempotencyKeys = 1_000_000
    /// Messages with receipts and their receivers, each of which counts; 0 for none.
    public var receipts = 1_000_000
    /// Messages that are published later, and their bytes.
    public var scheduled = 1_000_000
    public var scheduledBytes = 256 * 1024 * 1024
    /// Queue positions whose message a later one of its collapse key may replace; 0 for none.
    public var collapsible = 1_000_000
    /// Pushes that are kept: scheduled, under way and of the last 24 hours.
    public var pushes = 1_000
    /// Bytes of tags and of the identifiers of clients with tags; 0 refuses tags.
    public var tagBytes = 128 * 1024 * 1024
    /// Bytes of clients' newest reports and of their identifiers; 0 reads no reports.
    public var reportBytes = 32 * 1024 * 1024
    /// Devices and the wakes that they are owed.
    public var deviceBytes = 256 * 1024 * 1024
    /// Which messages wake phones; none without rules.
    public var wakeRules: [WakeRule] = []
    /// At most one wake of a device in this time.
    public var wakeMergeMilliseconds: UInt64 = 30_000
    /// A client whose connection failed is woken after this time.
    public var wakeReconnectMilliseconds: UInt64 = 15_000
    /// A connected client that does not acknowledge a message for this time is woken.
    public var wakeUnansweredMilliseconds: UInt64 = 20_000
    /// True to take the number off an app's icon once nothing waits for its client.
    public var wakeClearsBadge = false
    /// When alerts are held; `nil` for never, unless a rule says so.
    public var wakeQuietHours: QuietHours?
    /// The time zone of devices that name none.
    public var wakeTimeZone = ZoneTable.utc
    /// The most alerts of a device in a time; `nil` for any number.
    public var wakeCap: WakeCap?
    /// The time zones of this machine, which are no part of the configuration.
    public var wakeZones = ZoneTable()
    /// Bytes of what happened to clients lately; 0 keeps none.
    public var historyBytes = 32 * 1024 * 1024
    /// True when the ends of receivers are kept as events until they are taken.
    public var keepsReceiptEvents = false
    /// From disconnection to removal of a persistent session.
    public var sessionExpiry: Duration = .seconds(14 * 86_400)
    /// `nil` takes the descriptor limit less a reserve.
    public var maxConnections: Int?
    /// Connections of one address at a time.
    public var connectionsPerAddress = AddressLimit.auto
    /// Connections accepted per second; `nil` means unlimited.
    public var connectRate: Int? = 10_000
    /// Connections of one address per second.
    public var connectRatePerAddress = AddressLimit.auto
    /// TLS handshakes at a time.
    public var maxHandshakes = 1_000
    /// TLS handshakes of one address at a time.
    public var handshakesPerAddress = AddressLimit.auto
    /// Wrong passwords of one user from one address within ``lockoutWindow``, after which that user
    /// is locked out there for ``lockoutTime``; and of one address, whatever the user.
    public var lockoutAttempts = AddressLimit.auto
    public var lockoutAttemptsPerAddress = AddressLimit.auto
    public var lockoutWindow: Duration = .seconds(300)
    public var lockoutTime: Duration = .seconds(300)
    /// Private memory of the process, above which the broker closes connections.
    public var memory = MemoryLimit.auto
    /// Incomplete packets of all connections together.
    public var unfinishedBytes = 128 * 1024 * 1024
    /// Unsent bytes of one connection above which QoS 0 is dropped and QoS 1 and 2 wait.
    public var outputBytes = 1024 * 1024
    /// Time for unsent output during a shutdown.
    public var drainTimeout: Duration = .seconds(5)

    /// Bytes of records that wait for the disk. It has no key: a working disk never reaches it, and
    /// it bounds the memory while a disk hangs.
    public var storeBacklogBytes = 32 * 1024 * 1024

    public init() {}

    /// ``maxConnections`` as a number; unlimited until `auto` is replaced.
    public var mostConnections: Int { maxConnections ?? .max }

    /// ``memory`` as a number; `nil` means unlimited.
    public var memoryBytes: Int? { memory.bytes }

    /// ``sessionBytes`` as a number; unlimited when ``memory`` is.
    public var mostSessionBytes: Int {
        switch sessionBytes {
        case .auto: memoryBytes.map { $0 / 2 } ?? .max
        case .off: .max
        case .bytes(let bytes): bytes
        }
    }

    /// ``sessionBytesPerUser`` as a number.
    public var mostSessionBytesPerUser: Int {
        switch sessionBytesPerUser {
        case .auto: mostSessionBytes == .max ? .max : mostSessionBytes / 2
        case .off: .max
        case .bytes(let bytes): bytes
        }
    }

    /// ``subscriptionBytes``, or a quarter of what all sessions together may take.
    public var mostSubscriptionBytes: Int { min(subscriptionBytes, mostSessionBytes / 4) }

    /// What `auto` means for ``lockoutAttempts``.
    public static var usualLockoutAttempts: Int { 10 }
    /// What `auto` means for ``lockoutAttemptsPerAddress``: many phones may share an address.
    public static var usualLockoutAttemptsPerAddress: Int { 100 }

    /// A limit per peer address: an IPv4 address, or the /64 network of an IPv6 address.
    public enum AddressLimit: Sendable, Equatable {
        /// Half of the limit for all addresses, or the usual number; unlimited for loopback.
        case auto
        case off
        case number(Int)
    }

    /// A limit in bytes that follows from the machine unless it is set.
    public enum MemoryLimit: Sendable, Equatable {
        /// For the process 80 % of the memory of its control group or machine. For the
        /// sessions: half of the process's limit; of one user, half of that.
        case auto
        case off
        case bytes(Int)

        var bytes: Int? {
            guard case .bytes(let bytes) = self else { return nil }
            return bytes
        }
    }

    public enum QueuePolicy: String, Sendable, Equatable, CaseIterable {
        case dropOldest = "drop_oldest"
        case dropNewest = "drop_newest"
    }
}
