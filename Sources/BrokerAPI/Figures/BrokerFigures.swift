import Structures

/// All figures at one moment, for `GET /metrics` and `$SYS`. Counters run since the start.
public struct BrokerFigures: Sendable, Equatable {
    /// The count of one case, such as a reason. Fixed cases bound the number of series.
    public struct Count: Sendable, Equatable {
        /// A word of lower-case letters, digits, `_` and `.`.
        public var label: String
        public var value: UInt64

        public init(_ label: String, _ value: UInt64) {
            self.label = label
            self.value = value
        }
    }

    /// Counts of PUBLISH packets.
    public struct ByQoS: Sendable, Equatable {
        public var atMostOnce: UInt64
        public var atLeastOnce: UInt64
        public var exactlyOnce: UInt64

        public init(atMostOnce: UInt64 = 0, atLeastOnce: UInt64 = 0, exactlyOnce: UInt64 = 0) {
            self.atMostOnce = atMostOnce
            self.atLeastOnce = atLeastOnce
            self.exactlyOnce = exactlyOnce
        }

        public var total: UInt64 { atMostOnce + atLeastOnce + exactlyOnce }
    }

    /// A file of a TLS listener that expires: a certificate or revocation lists.
    public struct ExpiringFile: Sendable, Equatable {
        /// The listener's number in the configuration.
        public var listener: Int
        public var file: String
        /// Days until the first certificate or list in the file expires; negative once it has.
        public var daysLeft: Double
        /// When it expires, in seconds since 1970.
        public var expiresAt: Int64

        public init(listener: Int, file: String, daysLeft: Double, expiresAt: Int64) {
            self.listener = listener
            self.file = file
            self.daysLeft = daysLeft
            self.expiresAt = expiresAt
        }
    }

    /// Connections of one listener, since the start.
    public struct Listener: Sendable, Equatable {
        /// Where it listens, such as `127.0.0.1:1883`; set by the owner of the sockets.
        public var address = ""
        public var opened: UInt64 = 0
        /// CONNECTs answered with code 0, and with another.
        public var admitted: UInt64 = 0
        public var refused: UInt64 = 0
        public var closed: UInt64 = 0
        /// Closed connections whose CONNECT had been admitted.
        public var admittedClosed: UInt64 = 0

        /// Clients that are connected.
        public var connected: UInt64 { admitted - admittedClosed }

        public init() {}
    }

    public var version = ""
    /// "none", "interval" or "sync".
    public var durability = ""
    public var startedAtMs: Int64 = 0
    public var uptimeSeconds: UInt64 = 0

    /// Clients whose CONNECT was accepted.
    public var connections = 0
    /// Connections that wait for their CONNECT, the password check or the store.
    public var connectionsPending = 0
    /// The largest number of clients connected at one time.
    public var connectionsPeak = 0
    public var connectionsLimit = 0
    /// By the listener's number in the configuration.
    public var listeners: [Listener] = []
    public var connectionsOpened: UInt64 = 0
    /// CONNECTs answered with code 0.
    public var connectionsAdmitted: UInt64 = 0
    /// CONNECTs answered with another code.
    public var connectionsRefused: UInt64 = 0
    /// By reason.
    public var connectionsClosed: [Count] = []
    public var protocolViolations: UInt64 = 0
    /// Take-overs that were delayed, because two peers repeated them.
    public var takeOversDelayed: UInt64 = 0

    public var sessions = 0
    public var persistentSessions = 0
    /// Bytes that the sessions count for `limits.session_bytes`.
    public var sessionBytes = 0
    /// `nil` without a limit.
    public var sessionBytesLimit: Int?
    public var sessionsExpired: UInt64 = 0
    /// Plain subscriptions.
    public var subscriptions = 0
    public var sharedSubscriptions = 0
    /// Without the broker's own messages.
    public var retained = 0
    public var retainedBytes = 0
    /// Subscriptions whose retained messages are being sent.
    public var retainedWalks = 0

    public var packetsReceived: UInt64 = 0
    public var packetsSent: UInt64 = 0
    /// From clients and the HTTP API.
    public var publishesReceived = ByQoS()
    public var publishesSent = ByQoS()
    /// Bytes of payloads.
    public var publishBytesReceived: UInt64 = 0
    public var publishBytesSent: UInt64 = 0
    /// On the connections of clients.
    public var bytesReceived: UInt64 = 0
    public var bytesSent: UInt64 = 0

    /// Messages that did not reach a receiver, by reason.
    public var dropped: [Count] = []
    public var queued = 0
    public var queuedBytes = 0
    public var inFlight = 0
    /// From the arrival of a QoS 1 message at the broker to its receiver's PUBACK.
    public var deliveriesAtLeastOnce = TimeHistogram()
    /// From the arrival of a QoS 2 message at the broker to its receiver's PUBCOMP.
    public var deliveriesExactlyOnce = TimeHistogram()
    /// The same, from the acknowledgement to the sender.
    public var acknowledgedDeliveriesAtLeastOnce = TimeHistogram()
    public var acknowledgedDeliveriesExactlyOnce = TimeHistogram()
    /// From the arrival of a client's packet to its acknowledgement, where that waits for a commit.
    public var acknowledgements = TimeHistogram(.fiftyMicroseconds)
    /// Turns of the broker's thread by their length, without the wait for events.
    public var turns = TimeHistogram(.fiftyMicroseconds)
    /// The longest turn of the last minute.
    public var longestTurnMicroseconds: UInt64 = 0
    /// Number of times each limit was met.
    public var limitsReached: [Count] = []

    /// Denials by the access rules, by action.
    public var accessRefusals: [Count] = []
    /// Clients, users and networks that are shut out, with those whose time is over and that no
    /// change has removed yet.
    public var bans = 0
    /// True while an operator moves the clients elsewhere.
    public var isDraining = false
    /// Users and addresses that are locked out after wrong passwords, and such locks in all.
    public var lockouts = 0
    public var lockoutsBegun: UInt64 = 0
    /// Connections and CONNECTs that bans refused, by kind.
    public var bansMet: [Count] = []

    /// What features count.
    public var features: [FeatureFigure] = []
    /// What the counters of clients' reports have grown by.
    public var reportedGrowth = ReportedCounts()
    /// Devices, and their bytes.
    public var devices = 0
    public var deviceBytes = 0
    /// Registrations that were not taken, by reason.
    public var deviceRefusals: [Count] = []
    /// Devices that are owed a wake, or whose connected client is watched.
    public var wakesOwed = 0
    /// Messages that asked for a wake, by whether it was a new one.
    public var wakeMessages: [Count] = []
    /// Wakes by their end, and attempts that are repeated.
    public var wakes: [Count] = []
    /// Connections that ended without DISCONNECT.
    public var lostConnections: [LostConnections] = []

    /// Clients that are not read at the moment.
    public var publishersPaused = 0
    /// Password checks that have not begun.
    public var authenticationsWaiting = 0
    /// Groups of records that have not been committed.
    public var commitsPending = 0

    /// Connections that have completed a TLS handshake.
    public var tlsConnections = 0
    public var tlsHandshakesUnderWay = 0
    /// By kind: full or resumed.
    public var tlsHandshakes: [Count] = []
    /// By reason.
    public var tlsHandshakeFailures: [Count] = []
    /// Successful handshakes, by version.
    public var tlsVersions: [Count] = []
    public var certificates: [ExpiringFile] = []
    public var revocationLists: [ExpiringFile] = []

    public var memory = MemoryFigures()
    /// Memory shortage, from 0 (none) to 3 (readers).
    public var memoryPressure = 0

    /// All 0 with `durability: none`.
    public var store = StoreStatus()

    public var process = ProcessFigures()

    /// Set by the admin plane; empty elsewhere.
    public var admin = AdminFigures()

    public init() {}
}

extension [BrokerFigures.Count] {
    public var byLabel: [String: UInt64] {
        Dictionary(map { ($0.label, $0.value) }) { $1 }
    }
}
