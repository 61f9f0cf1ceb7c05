import Testing

@testable import HermesClientCore

/// The smart heartbeat of a phone that only waits, against a shard, behind a NAT.
@Suite("Smart heartbeat against simulated NATs")
struct SmartHeartbeatTests {
    struct Outcome {
        var seconds: Int
        var steps: Int
        var lost: Int
        var isStable: Bool
    }

    static let limits: [Int64?] = [150, 180, 210, 240, 270, 300, 330, 360, 420, 480, 540, 600, nil]

    @Test(
        "a simulated day ends within 10 % of the limit, with a connection lost per step",
        arguments: limits)
    func day(limitSeconds: Int64?) throws {
        let outcome = try Self.outcome(days: 1, limitSeconds: limitSeconds)
        let limit = Double(min(limitSeconds ?? 580, 580))
        Figures.show("NAT \(limitSeconds.map { "\($0) s" } ?? "none"), a day: \(outcome)")
        #expect(Double(outcome.seconds) <= limit && Double(outcome.seconds) >= 0.9 * limit)
        #expect(outcome.lost < outcome.steps)
        #expect(outcome.isStable)
    }

    @Test(
        "eight days too, with the step that is tried after seven",
        .enabled(if: Figures.areAsked), arguments: limits)
    func eightDays(limitSeconds: Int64?) throws {
        let outcome = try Self.outcome(days: 8, limitSeconds: limitSeconds)
        let limit = Double(min(limitSeconds ?? 580, 580))
        Figures.show("NAT \(limitSeconds.map { "\($0) s" } ?? "none"), eight days: \(outcome)")
        #expect(Double(outcome.seconds) <= limit && Double(outcome.seconds) >= 0.9 * limit)
        #expect(outcome.lost < outcome.steps)
    }

    private static func outcome(days: Int64, limitSeconds: Int64?) throws -> Outcome {
        let end = days * 24 * 3_600_000
        let world = World(
            History(quietFor: end, forgetsAfter: limitSeconds.map { $0 * 1_000 }))
        try world.begin()
        var steps = 0
        var last = 0
        while world.now < end {
            try world.pass(until: world.now + 10_000)
            let seconds = world.phones[0].machine.heartbeatSeconds
            if seconds != last { steps += 1 }
            last = seconds
        }
        let machine = world.phones[0].machine
        return Outcome(
            seconds: last, steps: steps, lost: Int(machine.counters.lostConnections),
            isStable: machine.stored.rhythms[[1]]?.search == .stable)
    }
}
