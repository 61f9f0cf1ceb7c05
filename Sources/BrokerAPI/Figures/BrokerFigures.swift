/// All figures at one moment, for `GET /metrics` and `$SYS`. Counters run since the start.
package struct BrokerFigures: Sendable, Equatable {
    /// The count of one case, such as a reason. Fixed cases bound the number of series.
    package struct Count: Sendable, Equatable {
        /// A word of lower-case letters, digits, `_` and `.`.
        package var label: String
        package var value: UInt64

        package init(_ label: String, _ value: UInt64) {
            self.label = label
            self.value = value
        }
    }

    /// Counts of PUBLISH packets.
    package struct ByQoS: Sendable, Equatable {
        package var atMostOnce: UInt64
        package var atLeastOnce: UInt64
        package var exactlyOnce: UInt64

        package init(atMostOnce: UInt64 = 0, atLeastOnce: UInt64 = 0, exactlyOnce: UInt64 = 0) {
            self.atMostOnce = atMostOnce
            self.atLeastOnce = atLeastOnce
            self.exactlyOnce = exactlyOnce
        }

        package var total: UInt64 { atMostOnce + atLeastOnce + exactlyOnce }
    }

    /// A file of a TLS listener that expires: a certificate or revocation lists.
    package struct ExpiringFile: Sendable, Equatable {
        /// The listener's number in the configuration.
        package var listener: Int
        package var file: String
        /// Days until the first certificate or list in the file expires; negative once it has.
        package var daysLeft: Double

        package init(listener: Int, file: String, daysLeft: Double) {
            self.listener = listener
            self.file = file
            self.daysLeft = daysLeft
        }
    }

    package var version = ""
    /// "none", "interval" or "sync".
    package var durability = ""
    package var startedAtMs: Int64 = 0
    package var uptimeSeconds: UInt64 = 0

    /// Clients whose CONNECT was accepted.
    package var connections = 0
    /// Connections that wait for their CONNECT, the password check or the store.
    package var connectionsPending = 0
    /// The largest number of clients connected at one time.
    package var connectionsPeak = 0
    package var connectionsLimit = 0
    package var connectionsOpened: UInt64 = 0
    /// CONNECTs answered with code 0.
    package var connectionsAdmitted: UInt64 = 0
    /// CONNECTs answered with another code.
    package var connectionsRefused: UInt64 = 0
    /// By reason.
    package var connectionsClosed: [Count] = []
    package var protocolViolations: UInt64 = 0
    /// Take-overs that were delayed, because two peers repeated them.
    package var takeOversDelayed: UInt64 = 0

    package var sessions = 0
    package var persistentSessions = 0
    package var sessionsExpired: UInt64 = 0
    /// Plain subscriptions.
    package var subscriptions = 0
    package var sharedSubscriptions = 0
    /// Without the broker's own messages.
    package var retained = 0
    package var retainedBytes = 0
    /// Subscriptions whose retained messages are being sent.
    package var retainedWalks = 0

    package var packetsReceived: UInt64 = 0
    package var packetsSent: UInt64 = 0
    /// From clients and the HTTP API.
    package var publishesReceived = ByQoS()
    package var publishesSent = ByQoS()
    /// Bytes of payloads.
    package var publishBytesReceived: UInt64 = 0
    package var publishBytesSent: UInt64 = 0
    /// On the connections of clients.
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0

    /// Messages that did not reach a receiver, by reason.
    package var dropped: [Count] = []
    package var queued = 0
    package var queuedBytes = 0
    package var inFlight = 0
    /// Number of times each limit was met.
    package var limitsReached: [Count] = []

    /// Denials by the access rules, by action.
    package var accessRefusals: [Count] = []

    /// Clients that are not read at the moment.
    package var publishersPaused = 0
    /// Password checks that have not begun.
    package var authenticationsWaiting = 0
    /// Groups of records that have not been committed.
    package var commitsPending = 0

    /// Connections that have completed a TLS handshake.
    package var tlsConnections = 0
    package var tlsHandshakesUnderWay = 0
    /// By kind: full or resumed.
    package var tlsHandshakes: [Count] = []
    /// By reason.
    package var tlsHandshakeFailures: [Count] = []
    /// Successful handshakes, by version.
    package var tlsVersions: [Count] = []
    package var certificates: [ExpiringFile] = []
    package var revocationLists: [ExpiringFile] = []

    package var memory = MemoryFigures()
    /// Memory shortage, from 0 (none) to 3 (readers).
    package var memoryPressure = 0

    /// All 0 with `durability: none`.
    package var store = StoreStatus()

    package var process = ProcessFigures()

    /// Set by the admin plane; empty elsewhere.
    package var admin = AdminFigures()

    package init() {}
}

extension [BrokerFigures.Count] {
    package var byLabel: [String: UInt64] {
        Dictionary(map { ($0.label, $0.value) }) { $1 }
    }
}
