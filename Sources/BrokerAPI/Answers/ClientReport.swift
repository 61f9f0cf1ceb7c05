/// What a client counted and told in its newest report (`hermes.v1.ClientReport`).
///
/// The figures are the client's word: the broker checks that the client itself sent them, not that
/// they are true.
public struct ClientReport: Codable, Sendable, Equatable {
    public var clientID: String
    /// UNIX time in milliseconds at which the report came.
    public var reportedAtMs: Int64
    /// The start of its counters: UNIX time in milliseconds on the client's clock.
    public var sinceMs: Int64
    /// The client's name for its network; `nil` without one.
    public var network: String?
    /// Seconds between two PINGREQs without other traffic; `nil` if the report does not tell.
    public var heartbeatSeconds: Int?
    /// See ``ReportedCounts/arrivalRate``.
    public var arrivalRate: Double?
    public var counts: ReportedCounts

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case reportedAtMs = "reported_at_ms"
        case sinceMs = "since_at_ms"
        case network
        case heartbeatSeconds = "heartbeat_seconds"
        case arrivalRate = "arrival_rate"
        case counts
    }

    public init(
        clientID: String, reportedAtMs: Int64, sinceMs: Int64, network: String?,
        heartbeatSeconds: Int?, counts: ReportedCounts
    ) {
        self.clientID = clientID
        self.reportedAtMs = reportedAtMs
        self.sinceMs = sinceMs
        self.network = network
        self.heartbeatSeconds = heartbeatSeconds
        arrivalRate = counts.arrivalRate
        self.counts = counts
    }
}

/// Counters of a report, or their sums over clients.
public struct ReportedCounts: Codable, Sendable, Equatable, BitwiseCopyable {
    /// Messages that reached clients, duplicates included.
    public var received: UInt64 = 0
    public var duplicates: UInt64 = 0
    /// Messages that never came, by the gaps in their sequences.
    public var losses: UInt64 = 0
    /// Connections that the broker accepted.
    public var connects: UInt64 = 0
    /// Connections that ended although the client wanted to go on.
    public var lostConnections: UInt64 = 0
    /// Sessions that the broker no longer had.
    public var lostSessions: UInt64 = 0
    /// Messages of QoS 0 that an app took too slowly.
    public var droppedAtMostOnce: UInt64 = 0
    /// Messages of QoS 1 and 2 that the broker has taken over from clients.
    public var published: UInt64 = 0

    enum CodingKeys: String, CodingKey {
        case received, duplicates, losses, connects, published
        case lostConnections = "lost_connections"
        case lostSessions = "lost_sessions"
        case droppedAtMostOnce = "dropped_at_most_once"
    }

    public init() {}

    /// The share of messages that arrived, of those that arrived or were lost, from 0 to 1; `nil`
    /// without any.
    public var arrivalRate: Double? {
        let arrived = received >= duplicates ? received - duplicates : 0
        let sent = arrived.addingReportingOverflow(losses)
        guard sent.partialValue > 0, !sent.overflow else { return nil }
        return Double(arrived) / Double(sent.partialValue)
    }

    /// All counters, in the order of the report's fields.
    public static var all: [(name: String, path: WritableKeyPath<ReportedCounts, UInt64>)] {
        [
            ("received", \.received), ("duplicates", \.duplicates), ("losses", \.losses),
            ("connects", \.connects), ("lost_connections", \.lostConnections),
            ("lost_sessions", \.lostSessions), ("dropped_at_most_once", \.droppedAtMostOnce),
            ("published", \.published),
        ]
    }
}

/// The newest reports of all clients together.
public struct ArrivalTotal: Codable, Sendable, Equatable {
    /// Clients whose reports are kept.
    public var clients = 0
    /// See ``ReportedCounts/arrivalRate``.
    public var arrivalRate: Double?
    public var counts = ReportedCounts()
    /// Reports since the broker's start, by what became of them.
    public var reports: [String: UInt64] = [:]

    enum CodingKeys: String, CodingKey {
        case clients
        case arrivalRate = "arrival_rate"
        case counts, reports
    }

    public init() {}
}

/// Some reports, in no particular order, with the sums over all. A page may be short, or empty,
/// although others follow.
public struct ArrivalPage: Codable, Sendable, Equatable {
    public var total: ArrivalTotal
    public var clients: [ClientReport]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(total: ArrivalTotal, clients: [ClientReport] = [], next: String? = nil) {
        self.total = total
        self.clients = clients
        self.next = next
    }
}
