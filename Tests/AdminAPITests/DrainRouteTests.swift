import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Drain routes")
struct DrainRouteTests {
    @Test("a drain begins, shows, and ends")
    func drain() async throws {
        let broker = StubBroker()
        try await TestServer.run(broker) { server in
            #expect(
                try server.request("GET", "/v1/drain").json(DrainStatus.self)
                    == DrainStatus(connections: 250))
            let start = try server.post("/v1/drain", json: #"{"per_second": 50}"#)
            #expect(start.status == 200)
            let status = try start.json(DrainStatus.self)
            #expect(status.state == .draining && status.perSecond == 50 && status.secondsLeft == 5)
            #expect(try server.request("GET", "/v1/drain").json(DrainStatus.self) == status)
            let end = try server.request("DELETE", "/v1/drain")
            #expect(end.status == 200)
            #expect(try end.json(DrainStatus.self).state == .off)
        }
    }

    @Test("without a rate it is 100 a second")
    func defaultRate() async throws {
        try await TestServer.run { server in
            let start = try server.post("/v1/drain", json: "{}")
            #expect(try start.json(DrainStatus.self).perSecond == 100)
        }
    }

    @Test(
        "a rate is a whole number from 1 to 100,000",
        arguments: ["0", "-1", "100001", "1.5", #""fast""#, "1e9"])
    func wrongRate(_ rate: String) async throws {
        let broker = StubBroker()
        try await TestServer.run(broker) { server in
            let answer = try server.post("/v1/drain", json: #"{"per_second": \#(rate)}"#)
            #expect(answer.status == 400)
            #expect(try answer.json(ProblemModel.self).field == "per_second")
            #expect(!broker.isDraining)
        }
    }

    @Test("readiness ends with the drain's begin and comes back with its end; health stays")
    func readiness() async throws {
        let broker = StubBroker()
        try await TestServer.run(broker) { server in
            #expect(try server.request("GET", "/readyz", token: nil).status == 200)
            _ = try server.post("/v1/drain", json: "{}")
            let answer = try server.request("GET", "/readyz", token: nil)
            #expect(answer.status == 503)
            #expect(try answer.json(ProblemModel.self).detail.hasPrefix("draining"))
            #expect(try server.request("GET", "/healthz", token: nil).status == 200)
            _ = try server.request("DELETE", "/v1/drain")
            #expect(try server.request("GET", "/readyz", token: nil).status == 200)
        }
    }

    @Test("a listener that cannot listen again is a conflict, and the drain goes on")
    func cannotListen() async throws {
        let broker = StubBroker { $0.drainEnd = .cannotListen("listen on 127.0.0.1:1883") }
        try await TestServer.run(broker) { server in
            _ = try server.post("/v1/drain", json: "{}")
            let end = try server.request("DELETE", "/v1/drain")
            #expect(end.status == 409)
            let problem = try end.json(ProblemModel.self)
            #expect(problem.type == "urn:hermes:problem:cannot-listen")
            #expect(problem.detail.contains("127.0.0.1:1883") && broker.isDraining)
        }
    }

    @Test("a snapshot and the metrics say that the broker is drained")
    func figures() {
        var figures = StubBroker.figures
        #expect(MetricsText.render(figures).contains("\nhermes_draining 0\n"))
        figures.isDraining = true
        let text = MetricsText.render(figures)
        #expect(text.contains("\nhermes_draining 1\n") && text.contains("\nhermes_ready 0\n"))
        var status = StubBroker.status
        status.drain = DrainStatus(
            isDrained: false, connections: 2, closed: 1, perSecond: 1, startedAtMs: 0)
        let snapshot = BrokerSnapshot(status: status, figures: figures, atMs: 0, clockMs: 0)
        #expect(!snapshot.ready && snapshot.notReadyReason == DrainStatus.notReadyReason)
    }
}
