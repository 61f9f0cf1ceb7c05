import Testing

@testable import HermesClientCore

@Suite("Random histories")
struct SimulationTests {
    /// Histories per test case; a failing one is replayed by its seed alone.
    private static let seedsPerCase: UInt64 = 250

    @Test(
        "with cuts and kills at every step all arrives, and QoS 2 and sequences never twice",
        arguments: UInt64(0)..<16)
    func histories(part: UInt64) throws {
        var kills = 0
        var cuts = 0
        var messages = 0
        for seed in part * Self.seedsPerCase..<(part + 1) * Self.seedsPerCase {
            let simulation = try Self.run(seed: seed)
            kills += simulation.kills
            cuts += simulation.cuts
            messages += simulation.got.count + simulation.broker.published.count
        }
        #expect(kills > 200 && cuts > 1_000 && messages > 10_000)
    }

    static func run(seed: UInt64) throws -> Simulation {
        var simulation = Simulation(seed: seed)
        try simulation.run(steps: 300)
        for payload in simulation.sentByBroker.keys where simulation.got[payload] == nil {
            throw simulation.failure("\(String(decoding: payload, as: UTF8.self)) did not come")
        }
        var arrived: [[UInt8]: Int] = [:]
        for payload in simulation.broker.published { arrived[payload, default: 0] += 1 }
        for (payload, qos) in simulation.accepted {
            let count = arrived[payload] ?? 0
            let text = String(decoding: payload, as: UTF8.self)
            if count == 0 { throw simulation.failure("\(text) was not published") }
            if qos == 2, count > 1, !simulation.lostSession {
                throw simulation.failure("\(text) was published \(count) times")
            }
        }
        guard simulation.broker.subscriptions == ["t"] else {
            throw simulation.failure("subscriptions: \(simulation.broker.subscriptions)")
        }
        return simulation
    }
}
