import FoundationEssentials
import Testing

@Suite("Phones and a broker on one clock")
struct ClientSimulationTests {
    /// `HERMES_HISTORIES` asks for so many histories, from the seed `HERMES_FIRST_SEED` on.
    private static let asked = Int(ProcessInfo.processInfo.environment["HERMES_HISTORIES"] ?? "")
    private static let firstSeed =
        UInt64(ProcessInfo.processInfo.environment["HERMES_FIRST_SEED"] ?? "") ?? 0
    /// `HERMES_SHRINK=no` leaves a history that fails as it is, which is quicker.
    private static let shrinks = ProcessInfo.processInfo.environment["HERMES_SHRINK"] != "no"

    @Test("under every fault all arrives, nothing twice, in order, and every loss is told")
    func histories() throws {
        let begin = Date()
        let count = Self.asked ?? 100
        var figures = Ledger.Figures()
        for seed in Self.firstSeed..<Self.firstSeed + UInt64(count) {
            let history = History(seed: seed)
            let world = World(history)
            do {
                try world.run()
            } catch {
                let shortest =
                    Self.shrinks ? history.shrunk { Self.failure(of: $0) != nil } : history
                Issue.record(
                    """
                    \(error), seed \(seed)
                    the shortest history that fails: \(shortest)
                    \(Self.failure(of: shortest) ?? "it passes when repeated")
                    """)
                return
            }
            figures += world.ledger.figures
        }
        let seconds = Date().timeIntervalSince(begin)
        if Self.asked != nil {
            print("\(count) histories in \(seconds) s: \(figures)")
        }
        #expect(figures.arrived == figures.expected)
        #expect(figures.cuts > count && figures.appKills > count && figures.brokerKills > count / 4)
        #expect(figures.published > 10 * count && figures.toldApart > 0 && figures.losses > 0)
    }

    @Test("a history is cut down to what its failing needs")
    func shrinking() throws {
        let history = History(seed: 1)
        let shortest = history.shrunk { history in
            let cuts = history.incidents.count { if case .cut = $0.kind { true } else { false } }
            let kills = history.incidents.count {
                if case .appKilled = $0.kind { true } else { false }
            }
            return cuts > 1 && kills > 0 && history.seed % 3 == 0
        }
        #expect(history.incidents.count > 20)
        #expect(shortest.incidents.count == 3, "\(shortest)")
        #expect(shortest.seed % 3 == 0)
    }

    private static func failure(of history: History) -> String? {
        do {
            try World(history).run()
            return nil
        } catch {
            return "\(error)"
        }
    }
}
