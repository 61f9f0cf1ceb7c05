import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl arrivals and lost-connections")
struct ArrivalsCommandTests {
    private static func report(_ clientID: String, received: UInt64, losses: UInt64) -> ClientReport
    {
        var counts = ReportedCounts()
        counts.received = received
        counts.losses = losses
        return ClientReport(
            clientID: clientID, reportedAtMs: 0, sinceMs: 0,
            network: losses > 0 ? "wi\u{1B}fi" : nil,
            heartbeatSeconds: losses > 0 ? 240 : nil, counts: counts)
    }

    private static let total: ArrivalTotal = {
        var total = ArrivalTotal()
        total.clients = 2
        total.counts.received = 20_000
        total.counts.losses = 1
        total.arrivalRate = total.counts.arrivalRate
        total.reports = ["taken": 4, "foreign": 0]
        return total
    }()

    @Test("the sums, then the clients, those that lost most first")
    func list() async throws {
        let pages = [
            ArrivalPage(
                total: Self.total, clients: [Self.report("a", received: 10_000, losses: 0)],
                next: "7"),
            ArrivalPage(
                total: Self.total, clients: [Self.report("b", received: 9_999, losses: 1)]),
        ]
        let run = try await run(["arrivals", "--losses"], answers: pages.map { try .ok($0) })
        let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "clients with reports   2")
        // Not rounded up to 100 %.
        #expect(lines[1] == "arrival rate           99.99 %")
        #expect(run.output.contains("reports                taken 4\n"))
        let table = lines.drop { !$0.hasPrefix("CLIENT") }
        #expect(table.count == 4)
        #expect(table.dropFirst().first?.hasPrefix("b       99.99 %") == true)
        #expect(table.dropFirst().first?.contains("240 s  wi\\u{1B}fi") == true)
        #expect(table.dropFirst(2).first?.hasPrefix("a         100 %") == true)
        #expect(
            run.requests.map(\.url) == [
                "http://127.0.0.1:8080/v1/arrivals?losses=true&limit=1000",
                "http://127.0.0.1:8080/v1/arrivals?losses=true&limit=999&cursor=7",
            ])
        #expect(run.exitCode == 0)
    }

    @Test("one client; without a report the exit code is 1, and why is told")
    func client() async throws {
        let page = ArrivalPage(
            total: Self.total, clients: [Self.report("a/b", received: 1, losses: 0)])
        let found = try await run(["arrivals", "--client", "a/b"], answers: [.ok(page)])
        #expect(found.exitCode == 0)
        #expect(
            found.requests.map(\.url) == ["http://127.0.0.1:8080/v1/arrivals?client_id=a%2Fb"])
        let none = try await run(
            ["arrivals", "--client", "x\u{1B}"], answers: [.ok(ArrivalPage(total: Self.total))])
        #expect(none.exitCode == 1)
        let json = try await run(
            ["arrivals", "--client", "x", "--json"], answers: [.ok(ArrivalPage(total: Self.total))])
        #expect(json.exitCode == 1 && json.output.hasPrefix("{"))
        #expect(none.errors.hasPrefix("hermesctl: there is no report of \"x\\u{1B}\"."))
    }

    @Test("JSON has the sums and all pages")
    func json() async throws {
        let page = ArrivalPage(
            total: Self.total, clients: [Self.report("a", received: 1, losses: 0)])
        let run = try await run(["arrivals", "--json"], answers: [.ok(page)])
        #expect(run.output.hasPrefix(#"{"clients":[{"arrival_rate":1,"client_id":"a","counts":{"#))
    }

    @Test(
        "wrong arguments are refused before a request",
        arguments: [
            ["arrivals", "--client", ""], ["arrivals", "--client", "a", "--losses"],
            ["arrivals", "--limit", "0"], ["lost-connections", "a"],
        ])
    func wrong(arguments: [String]) async throws {
        let run = try await run(arguments, answers: [])
        #expect(run.exitCode == 64)
        #expect(run.requests.isEmpty)
    }

    @Test("silences before lost connections are a table")
    func lostConnections() async throws {
        var (cell, unknown) = (
            LostConnections(cause: .keepAlive, network: "cell"),
            LostConnections(cause: .peerClosed, network: "")
        )
        for seconds: UInt64 in [250, 260, 4_000] { cell.silence.add(milliseconds: seconds * 1_000) }
        unknown.silence.add(milliseconds: 1)
        let run = try await run(
            ["lost-connections"], answers: [.ok(LostConnectionList([cell, unknown]))])
        #expect(
            run.output == """
                CAUSE        NETWORK          SILENCE  COUNT
                keep_alive   cell        240 to 300 s      2
                keep_alive   cell     1800 s and more      1
                peer_closed  -              0 to 10 s      1

                """)
    }
}
