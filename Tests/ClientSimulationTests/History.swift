import HermesClientCore
import HermesTesting

/// What happens in one simulation, besides what follows from it.
struct History: CustomStringConvertible {
    struct Incident: CustomStringConvertible {
        /// Milliseconds since the begin.
        var at: Int64
        var kind: Kind

        var description: String { "\(at) ms: \(kind)" }
    }

    enum Kind {
        case operatorPublishes(channel: Int, qos: UInt8, count: Int)
        case phonePublishes(Int, qos: UInt8, count: Int, isNamed: Bool)
        /// The connection ends at any byte in both directions, and both sides learn it.
        case cut(Int)
        /// The connection carries nothing more, and nobody learns it.
        case halfOpen(Int)
        /// Only the broker learns that the connection is gone.
        case goneAtBroker(Int)
        /// Only the phone learns it.
        case goneAtPhone(Int)
        case latency(Int, milliseconds: Int64)
        /// The address changes: the old connection is dead, and the phone is told of the network.
        case moves(Int, network: UInt8?)
        /// The program is killed within one of its next actions, and starts again.
        case appKilled(Int, actions: Int)
        /// The broker is killed with so many more groups of its last writes on disk.
        case brokerKilled(groups: Int)
        case diskTakes(milliseconds: Int64)
        case sessionEnds(Int)
        case background(Int)
        case foreground(Int)
        case wakes(Int)
        case stops(Int)
        case starts(Int)
        /// The app takes up to so long for a message from now on.
        case appTakes(Int, milliseconds: Int64)
    }

    var seed: UInt64
    var phones: Int
    /// By phone: its NAT forgets a connection after so many milliseconds without traffic.
    var forgetsAfter: [Int64?]
    /// So many of a hundred writes of a phone are met by a cut, at any of their bytes.
    var cutWritesPercent = 0
    var incidents: [Incident]
    /// The weather clears after so long.
    var milliseconds: Int64 = 300_000
    var heartbeat = ClientSettings.HeartbeatMode.fixed(seconds: 30)

    static let channels = 3

    /// One phone in smart mode that only waits, behind a NAT.
    init(quietFor milliseconds: Int64, forgetsAfter: Int64?) {
        seed = 1
        phones = 1
        self.forgetsAfter = [forgetsAfter]
        incidents = [Incident(at: 0, kind: .moves(0, network: 1))]
        self.milliseconds = milliseconds
        heartbeat = .smart
    }

    /// A history with every fault; sessions end in one of four only, because they excuse losses.
    init(seed: UInt64) {
        self.seed = seed
        var random = SplitMix64(seed: seed)
        phones = random.number(in: 1...3)
        forgetsAfter = (0..<phones).map { _ in random.pick([nil, nil, 15_000, 60_000]) }
        let endsSessions = random.once(in: 4)
        cutWritesPercent = random.pick([0, 0, 0, 30])
        incidents = []
        for _ in 0..<random.number(in: 20...80) {
            let kind = Self.incident(phones, endsSessions, &random)
            let at = Int64(random.number(in: 0...Int(milliseconds)))
            incidents.append(Incident(at: at, kind: kind))
        }
        incidents.sort { $0.at < $1.at }
    }

    private static func incident(
        _ phones: Int, _ endsSessions: Bool, _ random: inout SplitMix64
    ) -> Kind {
        let phone = random.number(in: 0...phones - 1)
        switch random.number(in: 0...99) {
        case 0..<30:
            return .operatorPublishes(
                channel: random.number(in: 0...channels - 1),
                qos: UInt8(random.number(in: 1...2)), count: random.number(in: 1...8))
        case 30..<45:
            return .phonePublishes(
                phone, qos: UInt8(random.number(in: 0...2)), count: random.number(in: 1...8),
                isNamed: random.once(in: 2))
        case 45..<57: return .cut(phone)
        case 57..<60: return .halfOpen(phone)
        case 60..<62: return .goneAtBroker(phone)
        case 62..<64: return .goneAtPhone(phone)
        case 64..<68: return .latency(phone, milliseconds: random.pick([20, 200, 2_000]))
        case 68..<72: return .moves(phone, network: random.pick([nil, 1, 2, 3]))
        case 72..<80: return .appKilled(phone, actions: random.number(in: 0...8))
        case 80..<83: return .brokerKilled(groups: random.number(in: 0...3))
        case 83..<86: return .diskTakes(milliseconds: random.pick([1, 50, 1_000]))
        case 86..<88: return .background(phone)
        case 88..<91: return .foreground(phone)
        case 91: return .wakes(phone)
        case 92: return .stops(phone)
        case 93..<96: return .starts(phone)
        case 96 where endsSessions: return .sessionEnds(phone)
        default: return .appTakes(phone, milliseconds: random.pick([10, 500, 5_000]))
        }
    }

    var description: String {
        let nats = forgetsAfter.map { $0.map { "\($0) ms" } ?? "never" }
        let lines = incidents.map { "  \($0)" }.joined(separator: "\n")
        return """
            seed \(seed), \(phones) phones, NATs forget: \(nats), \(cutWritesPercent) % of writes cut
            \(lines)
            """
    }

    /// The shortest history that is found to fail still, by leaving out ever smaller parts, 1,000
    /// tries at most. What is left out changes the chances of all that follows, so that each part is
    /// tried with several seeds.
    func shrunk(while fails: (History) -> Bool) -> History {
        var best = self
        var tries = 1_000
        var size = max(1, incidents.count / 2)
        while tries > 0 {
            let before = best.incidents.count
            var start = 0
            while start < best.incidents.count, tries > 0 {
                var candidate = best
                candidate.incidents.removeSubrange(
                    start..<min(start + size, candidate.incidents.count))
                let seeds = (0..<5).map { best.seed &+ $0 }
                let failing = seeds.first { seed in
                    tries -= 1
                    candidate.seed = seed
                    return fails(candidate)
                }
                if failing == nil { start += size } else { best = candidate }
            }
            if size == 1, best.incidents.count == before { break }
            size = max(1, size / 2)
        }
        return best
    }
}
