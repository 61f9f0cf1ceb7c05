/// What the broker counts and measures, at one moment: `GET /metrics` and the `$SYS` topics show the
/// same figures. Counters run since the start; everything else is how things stand.
public struct BrokerFigures: Sendable, Equatable {
    /// A count of a case, such as a reason: the cases are fixed, so that the number of series is.
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

    /// A file of a TLS listener that is over one day: a certificate, or revocation lists.
    public struct ExpiringFile: Sendable, Equatable {
        /// The listener's number in the configuration.
        public var listener: Int
        public var file: String
        /// Until it ends, or the first in it does; below 0 once it has.
        public var daysLeft: Double

        public init(listener: Int, file: String, daysLeft: Double) {
            self.listener = listener
            self.file = file
            self.daysLeft = daysLeft
        }
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
    /// The most clients that were connected at a time.
    public var connectionsPeak = 0
    public var connectionsLimit = 0
    public var connectionsOpened: UInt64 = 0
    /// CONNECTs answered with code 0.
    public var connectionsAdmitted: UInt64 = 0
    /// CONNECTs answered with another code.
    public var connectionsRefused: UInt64 = 0
    /// By reason.
    public var connectionsClosed: [Count] = []
    public var protocolViolations: UInt64 = 0
    /// Take-overs that had to wait, because two peers threw each other out again and again.
    public var takeOversDelayed: UInt64 = 0

    public var sessions = 0
    public var persistentSessions = 0
    public var sessionsExpired: UInt64 = 0
    /// Without shared ones.
    public var subscriptions = 0
    public var sharedSubscriptions = 0
    /// Without the broker's own.
    public var retained = 0
    public var retainedBytes = 0
    /// Subscriptions whose retained messages are on their way.
    public var retainedWalks = 0

    public var packetsReceived: UInt64 = 0
    public var packetsSent: UInt64 = 0
    /// From clients and over HTTP.
    public var publishesReceived = ByQoS()
    public var publishesSent = ByQoS()
    /// Payloads alone.
    public var publishBytesReceived: UInt64 = 0
    public var publishBytesSent: UInt64 = 0
    /// Over the connections of clients.
    public var bytesReceived: UInt64 = 0
    public var bytesSent: UInt64 = 0

    /// Messages that did not reach a receiver, by reason.
    public var dropped: [Count] = []
    public var queued = 0
    public var queuedBytes = 0
    public var inFlight = 0
    /// How often a limit was met, by its setting.
    public var limitsReached: [Count] = []

    /// What the access rules refused, by what was attempted.
    public var accessRefusals: [Count] = []

    /// Clients that are not read at present.
    public var publishersPaused = 0
    /// Password checks that have not begun.
    public var authenticationsWaiting = 0
    /// Groups of writes that the store has not confirmed.
    public var commitsPending = 0

    /// Connections that speak TLS, their handshake being over.
    public var tlsConnections = 0
    public var tlsHandshakesUnderWay = 0
    /// By kind: full or resumed.
    public var tlsHandshakes: [Count] = []
    /// By reason.
    public var tlsHandshakeFailures: [Count] = []
    /// Handshakes that succeeded, by version.
    public var tlsVersions: [Count] = []
    public var certificates: [ExpiringFile] = []
    public var revocationLists: [ExpiringFile] = []

    public var memory = MemoryModel()
    /// 0 for none to 3: what is given up because memory is short.
    public var memoryPressure = 0

    /// All 0 with `durability: none`.
    public var store = StoreModel()

    public var process = ProcessFigures()

    /// Known to the admin plane alone; empty elsewhere.
    public var admin = AdminFigures()

    public init() {}
}

/// What the kernel says of the process.
public struct ProcessFigures: Sendable, Equatable {
    public var residentBytes = 0
    public var peakResidentBytes = 0
    /// User and system time of all threads.
    public var cpuSeconds = 0.0
    public var openDescriptors = 0
    public var descriptorLimit = 0

    public init() {}
}

/// What the admin plane counts of itself.
public struct AdminFigures: Sendable, Equatable {
    /// Requests that were not let in, by reason.
    public var refused: [BrokerFigures.Count] = []
    /// Connections that were refused, because their listener had as many as it may have.
    public var connectionsRefused: UInt64 = 0
    /// The certificate of HTTPS; `nil` with plain HTTP.
    public var certificate: Certificate?

    /// A certificate in use.
    public struct Certificate: Sendable, Equatable {
        public var file: String
        /// Until it ends; below 0 once it has.
        public var daysLeft: Double

        public init(file: String, daysLeft: Double) {
            self.file = file
            self.daysLeft = daysLeft
        }
    }

    public init() {}
}
