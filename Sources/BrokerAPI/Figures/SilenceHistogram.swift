/// Counts spans of silence by length, in buckets whose bounds are the times after which networks
/// are known to forget connections.
public struct SilenceHistogram: Sendable, Equatable {
    /// Seconds; longer spans have a bucket of their own behind them.
    public static let bounds = [
        10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 900, 1_800,
    ]

    /// Spans of each bucket, and not of those below it.
    private var counts = [UInt64](repeating: 0, count: Self.bounds.count + 1)
    private var totalMilliseconds: UInt64 = 0

    public init() {}

    public mutating func add(milliseconds: UInt64) {
        let bucket = Self.bounds.firstIndex { milliseconds < UInt64($0) * 1_000 }
        counts[bucket ?? Self.bounds.count] += 1
        totalMilliseconds &+= milliseconds
    }

    /// The sum of all spans.
    public var seconds: Double { Double(totalMilliseconds) / 1e3 }
    public var count: UInt64 { counts.reduce(0, +) }

    /// For each bound in seconds, the number of spans below it.
    public var cumulative: [(bound: Int, count: UInt64)] {
        var sum: UInt64 = 0
        return zip(Self.bounds, counts).map { bound, count in
            sum += count
            return (bound, sum)
        }
    }
}

/// How a connection was lost, without DISCONNECT from its client.
public enum LossCause: UInt8, CountLabel {
    /// The client was silent for longer than its keep alive allows.
    case keepAlive
    /// The system reported an error, such as a reset.
    case networkError
    /// The peer ended the TCP connection.
    case peerClosed
    /// The client came back while this connection seemed to live.
    case takenOver

    public var name: String {
        switch self {
        case .keepAlive: "keep_alive"
        case .networkError: "network_error"
        case .peerClosed: "peer_closed"
        case .takenOver: "taken_over"
        }
    }
}

/// Lost connections of one cause and network, by the time since the client's last packet.
public struct LostConnections: Sendable, Equatable {
    public var cause: LossCause
    /// The network that the client's last report named; empty for none, and
    /// ``otherNetwork`` for those beyond the first 64.
    public var network: String
    public var silence = SilenceHistogram()

    public static let otherNetwork = "other"

    public init(cause: LossCause, network: String) {
        self.cause = cause
        self.network = network
    }
}
