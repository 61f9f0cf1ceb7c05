import BrokerAPI
import RequestText
import Testing

@testable import AdminAPI

@Suite("/v1/clients")
struct ClientRouteTests {
    @Test("the list passes its filters on and its page back")
    func list() async throws {
        let page = ClientPage(
            clients: [StubBroker.summary("a"), StubBroker.summary("b", connected: false)],
            next: "b")
        try await TestServer.run(StubBroker { $0.page = page }) { server in
            let response = try server.request(
                "GET",
                "/v1/clients?connected=false&prefix=ph%2F&user_name=ann&limit=7&cursor=782679")
            #expect(response.status == 200)
            #expect(try response.json(ClientPage.self) == page)
            #expect(try server.request("GET", "/v1/clients").status == 200)
            #expect(
                server.broker.queries == [
                    ClientQuery(
                        connected: false, prefix: "ph/", userName: "ann", limit: 7, cursor: "782679"
                    ),
                    ClientQuery(),
                ])
        }
    }

    @Test("the list is sorted and filtered by address, version and time")
    func sorted() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "GET",
                "/v1/clients?sort=queued_bytes&address=10.1.0.0%2F16&protocol=3.1"
                    + "&before_ms=20&from_ms=10")
            #expect(response.status == 200)
            #expect(
                server.broker.queries == [
                    ClientQuery(
                        address: "10.1.0.0/16", protocolVersion: "3.1", beforeMs: 20, fromMs: 10,
                        order: .queuedBytes)
                ])
        }
    }

    @Test(
        "a wrong filter is refused by name",
        arguments: [
            ("connected=maybe", "connected"), ("limit=0", "limit"), ("limit=1001", "limit"),
            ("limit=+5", "limit"), ("user=ann", "user"), ("cursor=17a", "cursor"),
            ("cursor=1G", "cursor"), ("cursor=7A", "cursor"), ("sort=size", "sort"),
            ("address=10.0.0", "address"), ("protocol=5", "protocol"),
            ("before_ms=-1", "before_ms"), ("from_ms=now", "from_ms"),
        ])
    func wrongFilter(query: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request("GET", "/v1/clients?" + query).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-query")
            #expect(problem.field == field)
        }
    }

    @Test(
        "a client identifier may hold any character",
        arguments: [
            ("phone-1", "phone-1"), ("a%2Fb", "a/b"), ("a%3Fb%23c%25d", "a?b#c%d"),
            ("%E9%94%80+1", "销+1"), ("..", ".."), ("%20", " "), ("%00", "\0"),
        ])
    func identifiers(encoded: String, clientID: String) async throws {
        let detail = StubBroker.detail(clientID)
        try await TestServer.run(StubBroker { $0.details[clientID] = detail }) { server in
            let shown = try server.request("GET", "/v1/clients/" + encoded)
            #expect(shown.status == 200)
            #expect(try shown.json(ClientDetail.self) == detail)
            let closed = try server.request("DELETE", "/v1/clients/" + encoded)
            #expect(closed.status == 200)
            #expect(
                try closed.json(DisconnectResult.self)
                    == DisconnectResult(clientID: clientID, disconnected: true))
            #expect(server.broker.disconnected == [clientID])
        }
    }

    @Test("a client alone has the members that it has in the list, with the same values, and more")
    func sameShape() async throws {
        let detail = StubBroker.detail("a")
        let broker = StubBroker {
            $0.details["a"] = detail
            $0.page = ClientPage(clients: [detail.summary], next: nil)
        }
        try await TestServer.run(broker) { server in
            let alone = try JSONParser.parse(
                Array(try server.request("GET", "/v1/clients/a").text.utf8))
            let list = try JSONParser.parse(
                Array(try server.request("GET", "/v1/clients").text.utf8))
            let listed = try #require(list["clients"]?.elements?.first?.members)
            #expect(!listed.isEmpty)
            for member in listed { #expect(alone[member.name.string] == member.value) }
            #expect(alone["summary"] == nil && alone["subscription_list"] != nil)
        }
    }

    @Test("disconnecting an offline client reports that it was not connected")
    func away() async throws {
        let detail = StubBroker.detail("a", connected: false)
        try await TestServer.run(StubBroker { $0.details["a"] = detail }) { server in
            let response = try server.request("DELETE", "/v1/clients/a")
            #expect(response.status == 200)
            #expect(!(try response.json(DisconnectResult.self).disconnected))
        }
    }

    @Test("an unknown client is 404, and its name is made visible", arguments: ["GET", "DELETE"])
    func unknown(method: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request(method, "/v1/clients/a%1B%5B2J").problem()
            #expect(problem.status == 404)
            #expect(problem.type == "urn:hermes:problem:client-not-found")
            #expect(problem.detail.contains("\"a\\u{1B}[2J\""))
        }
    }

    @Test("an identifier that is not UTF-8 is refused", arguments: ["%FF", "%", "%2", "%zz"])
    func notUTF8(encoded: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request("GET", "/v1/clients/" + encoded).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-field")
            #expect(problem.field == "id")
        }
    }
}
