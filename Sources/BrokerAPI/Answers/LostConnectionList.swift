/// Lost connections by cause, network and the silence before their end.
public struct LostConnectionList: Codable, Sendable, Equatable {
    /// Lost connections of one cause and network.
    public struct Group: Codable, Sendable, Equatable {
        /// A ``LossCause``.
        public var cause: String
        /// `nil` for clients that have not named one.
        public var network: String?
        public var count: UInt64
        /// Whole connections by the silence before their end; bounds without any are left out.
        public var silences: [Silence]

        public init(_ lost: LostConnections) {
            cause = lost.cause.name
            network = lost.network.isEmpty ? nil : lost.network
            count = lost.silence.count
            silences = []
            var below: UInt64 = 0
            var from = 0
            for (bound, sum) in lost.silence.cumulative {
                if sum > below {
                    silences.append(Silence(from: from, below: bound, count: sum - below))
                }
                (below, from) = (sum, bound)
            }
            if count > below {
                silences.append(Silence(from: from, below: nil, count: count - below))
            }
        }
    }

    /// Connections with a silence of some length.
    public struct Silence: Codable, Sendable, Equatable {
        /// Seconds.
        public var from: Int
        /// Seconds; `nil` without a bound.
        public var below: Int?
        public var count: UInt64

        enum CodingKeys: String, CodingKey {
            case from = "from_seconds"
            case below = "below_seconds"
            case count
        }

        public init(from: Int, below: Int?, count: UInt64) {
            self.from = from
            self.below = below
            self.count = count
        }
    }

    /// By cause, then by network.
    public var lost: [Group]

    public init(_ lost: [LostConnections]) { self.lost = lost.map { Group($0) } }
}
