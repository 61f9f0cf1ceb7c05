import Structures

/// The broker at one moment: an event of `GET /v1/events`. Counters run since the start.
public struct BrokerSnapshot: Codable, Sendable, Equatable {
    /// UNIX time in milliseconds.
    public var atMs: Int64
    /// Milliseconds of a clock that nobody sets. A counter's difference between two snapshots over
    /// the difference of this is a rate.
    public var clockMs: Int64
    /// False when data may be lost or cannot be stored, and while the broker is drained.
    public var ready: Bool
    /// `nil` when it is ready.
    public var notReadyReason: String?
    /// As `GET /v1/status` answers.
    public var status: BrokerStatus
    /// Sessions without a connection.
    public var offline: Int
    public var connectionsPeak: Int
    public var connectionsLimit: Int
    /// PUBLISH packets from clients and HTTP publishes, with QoS 0, 1 and 2.
    public var publishesReceivedByQoS: [UInt64]
    /// PUBLISH packets to clients, with QoS 0, 1 and 2.
    public var publishesSentByQoS: [UInt64]
    /// Groups of records that have not been committed.
    public var commitsPending: Int
    /// `nil` with `durability: none`.
    public var storeTimes: StoreTimes?
    /// Denials by the access rules, by action.
    public var accessRefusals: [String: UInt64]
    /// What TLS uses and what expires, the first to expire first.
    public var certificates: [ExpiringCertificate]

    /// Commits and calls of fdatasync by their time: how many took at most each bound, and last how
    /// many there were.
    public struct StoreTimes: Codable, Sendable, Equatable {
        /// Microseconds, each twice the one before.
        public var boundsMicroseconds: [UInt64]
        public var commits: [UInt64]
        public var syncs: [UInt64]

        enum CodingKeys: String, CodingKey {
            case boundsMicroseconds = "bounds_us"
            case commits
            case syncs = "fdatasyncs"
        }

        init(_ store: StoreStatus) {
            boundsMicroseconds = store.commitTimes.cumulative.map { UInt64($0.bound * 1e6 + 0.5) }
            commits = Self.counts(of: store.commitTimes)
            syncs = Self.counts(of: store.syncTimes)
        }

        private static func counts(of times: TimeHistogram) -> [UInt64] {
            times.cumulative.map(\.count) + [times.count]
        }
    }

    /// A file of TLS with what expires in it first.
    public struct ExpiringCertificate: Codable, Sendable, Equatable {
        /// The section of the configuration that names the file.
        public var section: String
        public var file: String
        /// Rounded down to a tenth; negative once it has expired.
        public var daysLeft: Double

        enum CodingKeys: String, CodingKey {
            case section, file
            case daysLeft = "days_left"
        }

        init(section: String, file: String, daysLeft: Double) {
            self.section = section
            self.file = file
            self.daysLeft = (daysLeft * 10).rounded(.down) / 10
        }
    }

    enum CodingKeys: String, CodingKey {
        case atMs = "at_ms"
        case clockMs = "clock_ms"
        case ready
        case notReadyReason = "not_ready_reason"
        case status, offline
        case connectionsPeak = "connections_peak"
        case connectionsLimit = "connections_limit"
        case publishesReceivedByQoS = "publishes_received_by_qos"
        case publishesSentByQoS = "publishes_sent_by_qos"
        case commitsPending = "commits_pending"
        case storeTimes = "store_times"
        case accessRefusals = "access_refusals"
        case certificates
    }

    /// Makes a snapshot of the answer to `GET /v1/status` and the figures of the same time, with
    /// the admin plane's certificate.
    public init(status: BrokerStatus, figures: BrokerFigures, atMs: Int64, clockMs: Int64) {
        self.atMs = atMs
        self.clockMs = clockMs
        self.status = status
        notReadyReason = status.notReadyReason
        ready = notReadyReason == nil
        offline = max(0, figures.sessions - figures.connections)
        connectionsPeak = figures.connectionsPeak
        connectionsLimit = figures.connectionsLimit
        publishesReceivedByQoS = figures.publishesReceived.byQoS
        publishesSentByQoS = figures.publishesSent.byQoS
        commitsPending = figures.commitsPending
        storeTimes = status.store.map { StoreTimes($0) }
        accessRefusals = figures.accessRefusals.byLabel
        certificates = Self.certificates(figures)
    }

    private static func certificates(_ figures: BrokerFigures) -> [ExpiringCertificate] {
        let listeners = (figures.certificates + figures.revocationLists).map {
            ExpiringCertificate(
                section: "listeners[\($0.listener)].tls", file: $0.file, daysLeft: $0.daysLeft)
        }
        let admin = figures.admin.certificate.map {
            ExpiringCertificate(section: "admin.tls", file: $0.file, daysLeft: $0.daysLeft)
        }
        return (listeners + (admin.map { [$0] } ?? [])).sorted { $0.daysLeft < $1.daysLeft }
    }
}

extension BrokerFigures.ByQoS {
    /// The counts of QoS 0, 1 and 2.
    fileprivate var byQoS: [UInt64] { [atMostOnce, atLeastOnce, exactlyOnce] }
}
