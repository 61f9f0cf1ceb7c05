import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Arrivals and lost connections")
struct ArrivalRouteTests {
    @Test("a page holds reports of several pages of the data plane, and the sums")
    func pages() async throws {
        let broker = StubBroker { state in
            state.arrivalPages = [
                0: ArrivalPage(
                    total: StubBroker.arrivalTotal, clients: [StubBroker.report("a")], next: "5"),
                5: ArrivalPage(total: StubBroker.arrivalTotal, next: "7"),
                7: ArrivalPage(
                    total: StubBroker.arrivalTotal, clients: [StubBroker.report("b")], next: "9"),
            ]
        }
        try await TestServer.run(broker) { server in
            let page = try server.request("GET", "/v1/arrivals?limit=2&losses=true")
                .json(ArrivalPage.self)
            #expect(page.clients.map(\.clientID) == ["a", "b"])
            #expect(page.next == PlaceCursor(9 as UInt32).text)
            #expect(page.total == StubBroker.arrivalTotal)
            broker.change { #expect($0.arrivalRequests == [true, true, true]) }
        }
    }

    @Test("one client's report, or none, with the sums")
    func client() async throws {
        let broker = StubBroker { $0.reports["a/b"] = StubBroker.report("a/b") }
        try await TestServer.run(broker) { server in
            let page = try server.request("GET", "/v1/arrivals?client_id=a%2Fb")
                .json(ArrivalPage.self)
            #expect(page.clients == [StubBroker.report("a/b")])
            #expect(page.clients.first?.arrivalRate == 0.5)
            #expect(page.total.clients == 2)
            let none = try server.request("GET", "/v1/arrivals?client_id=b").json(ArrivalPage.self)
            #expect(none.clients.isEmpty)
        }
    }

    @Test(
        "wrong queries are refused by parameter",
        arguments: [
            ("losses=yes", "losses"), ("limit=0", "limit"), ("cursor=x", "cursor"),
            ("client_id=x&limit=false", "limit"), ("client_id=x&cursor=x", "cursor"),
            ("client_id=", "client_id"), ("client_id=%00", "client_id"),
            ("network=wifi", "network"),
        ])
    func wrong(query: String, field: String) async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/v1/arrivals?\(query)")
            #expect(response.status == 400)
            #expect(try response.problem().field == field)
        }
    }

    @Test("silences are told by their bounds, those without connections left out")
    func lostConnections() async throws {
        var lost = LostConnections(cause: .takenOver, network: "")
        for seconds: UInt64 in [9, 10, 299, 1_800] {
            lost.silence.add(milliseconds: seconds * 1_000)
        }
        let group = LostConnectionList([lost]).lost[0]
        #expect(group.cause == "taken_over")
        #expect(group.network == nil)
        #expect(group.count == 4)
        #expect(
            group.silences == [
                .init(from: 0, below: 10, count: 1), .init(from: 10, below: 30, count: 1),
                .init(from: 240, below: 300, count: 1), .init(from: 1_800, below: nil, count: 1),
            ])
        try await TestServer.run { server in
            let list = try server.request("GET", "/v1/lost-connections")
                .json(LostConnectionList.self)
            #expect(list == LostConnectionList(StubBroker.figures.lostConnections))
            #expect(list.lost.first?.network == "wi\"fi")
        }
    }
}
