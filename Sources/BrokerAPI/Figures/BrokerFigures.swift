/// What the broker counts and measures, at one moment: `GET /metrics` and the `$SYS` topics show the
/// same figures. Counters run since the start; everything else is how things stand.
package struct BrokerFigures: Sendable, Equatable {
    /// A count of a case, such as a reason: the cases are fixed, so that the number of series is.
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

    /// A file of a TLS listener that is over one day: a certificate, or revocation lists.
    package struct ExpiringFile: Sendable, Equatable {
        /// The listener's number in the configuration.
        package var listener: Int
        package var file: String
        /// Until it ends, or the first in it does; below 0 once it has.
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
    /// The most clients that were connected at a time.
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
    /// Take-overs that had to wait, because two peers threw each other out again and again.
    package var takeOversDelayed: UInt64 = 0

    package var sessions = 0
    package var persistentSessions = 0
    package var sessionsExpired: UInt64 = 0
    /// Without shared ones.
    package var subscriptions = 0
    package var sharedSubscriptions = 0
    /// Without the broker's own.
    package var retained = 0
    package var retainedBytes = 0
    /// Subscriptions whose retained messages are on their way.
    package var retainedWalks = 0

    package var packetsReceived: UInt64 = 0
    package var packetsSent: UInt64 = 0
    /// From clients and over HTTP.
    package var publishesReceived = ByQoS()
    package var publishesSent = ByQoS()
    /// Payloads alone.
    package var publishBytesReceived: UInt64 = 0
    package var publishBytesSent: UInt64 = 0
    /// Over the connections of clients.
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0

    /// Messages that did not reach a receiver, by reason.
    package var dropped: [Count] = []
    package var queued = 0
    package var queuedBytes = 0
    package var inFlight = 0
    /// How often a limit was met, by its setting.
    package var limitsReached: [Count] = []

    /// What the access rules refused, by what was attempted.
    package var accessRefusals: [Count] = []

    /// Clients that are not read at present.
    package var publishersPaused = 0
    /// Password checks that have not begun.
    package var authenticationsWaiting = 0
    /// Groups of writes that the store has not confirmed.
    package var commitsPending = 0

    /// Connections that speak TLS, their handshake being over.
    package var tlsConnections = 0
    package var tlsHandshakesUnderWay = 0
    /// By kind: full or resumed.
    package var tlsHandshakes: [Count] = []
    /// By reason.
    package var tlsHandshakeFailures: [Count] = []
    /// Handshakes that succeeded, by version.
    package var tlsVersions: [Count] = []
    package var certificates: [ExpiringFile] = []
    package var revocationLists: [ExpiringFile] = []

    package var memory = MemoryFigures()
    /// 0 for none to 3: what is given up because memory is short.
    package var memoryPressure = 0

    /// All 0 with `durability: none`.
    package var store = StoreStatus()

    package var process = ProcessFigures()

    /// Known to the admin plane alone; empty elsewhere.
    package var admin = AdminFigures()

    package init() {}
}
