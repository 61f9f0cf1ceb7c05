import BrokerAPI
import Credentials
import Testing

@testable import AdminAPI

@Suite("Tokens over HTTP, and their bounds")
struct TokenRouteTests {
    /// Runs a server with a token file.
    private func run(_ body: (TestServer, String) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder + "/tokens"
            let checks = try TokenChecks(path: path, logger: CapturedLog().logger)
            try await TestServer.run(with: .init { $0.tokens = checks }) { server in
                try await body(server, path)
            }
        }
    }

    @Test("a token is made, used, listed and revoked")
    func life() async throws {
        try await run { server, path in
            #expect(try server.request("GET", "/v1/tokens").text == "{\"tokens\":[]}\n")
            let made = try server.post(
                "/v1/tokens",
                json: #"{"name":"billing","scopes":["publish"],"topics":["orders/#"],"rate":"5/m"}"#
            )
            #expect(made.status == 201)
            let created = try made.json(TokenCreated.self)
            #expect(created.token.hasPrefix("hermes_"))
            #expect(created.summary.topics == ["orders/#"])
            #expect(created.summary.rate == "5/m")
            // As in the list, with the secret beside.
            #expect(made.text.contains(#""name":"billing""#) && !made.text.contains("summary"))
            #expect(try TokenFile.load(path: path).entries.map(\.name.text) == ["billing"])

            let published = try server.request(
                "POST", "/v1/publish?topic=orders/7", token: created.token, body: [1])
            #expect(published.status == 200)
            let listed = try server.request("GET", "/v1/tokens")
            #expect(try listed.json(TokenList.self).tokens == [created.summary])
            #expect(!listed.text.contains(created.token.dropFirst(7)))

            let again = try server.post(
                "/v1/tokens", json: #"{"name":"billing","scopes":["read"]}"#)
            #expect(try again.problem().type == "urn:hermes:problem:token-exists")
            let revoked = try server.request("DELETE", "/v1/tokens/billing")
            #expect(revoked.text == "{\"revoked\":\"billing\"}\n")
            let refused = try server.request(
                "POST", "/v1/publish?topic=orders/7", token: created.token, body: [1])
            #expect(try refused.problem().status == 401)
            let unknown = try server.request("DELETE", "/v1/tokens/billing")
            #expect(try unknown.problem().type == "urn:hermes:problem:token-not-found")
        }
    }

    @Test(
        "a wrong token is refused by field",
        arguments: [
            (#"{"scopes":["read"]}"#, "name"), (#"{"name":"a b","scopes":["read"]}"#, "name"),
            (#"{"name":"admin","scopes":["read"]}"#, "name"), (#"{"name":"a"}"#, "scopes"),
            (#"{"name":"a","scopes":[]}"#, "scopes"), (#"{"name":"a","scopes":"read"}"#, "scopes"),
            (#"{"name":"a","scopes":["read","read"]}"#, "scopes"),
            (#"{"name":"a","scopes":["publish,read"]}"#, "scopes"),
            (#"{"name":"a","scopes":["root"]}"#, "scopes"),
            (#"{"name":"a","scopes":[1]}"#, "scopes"),
            (#"{"name":"a","scopes":["publish"],"topics":["a/#/b"]}"#, "topics"),
            (#"{"name":"a","scopes":["publish"],"rate":"fast"}"#, "rate"),
            (#"{"name":"a","scopes":["publish"],"rate":5}"#, "rate"),
            (#"{"name":"a","scopes":["read"],"rate":"5/s"}"#, "rate"),
            (#"{"name":"a","scopes":["admin"],"topics":["a"]}"#, "topics"),
            (#"{"name":"a","scopes":["read"],"expires_in_s":59}"#, "expires_in_s"),
            (#"{"name":"a","scopes":["read"],"secret":"x"}"#, "secret"),
        ])
    func wrong(json: String, field: String) async throws {
        try await run { server, path in
            let problem = try server.post("/v1/tokens", json: json).problem()
            #expect(problem.status == 400)
            #expect(problem.field == field)
            #expect(throws: TokenFileError.self) { try TokenFile.load(path: path) }
        }
    }

    @Test("a token that is bound publishes within its topics and rate on every route")
    func bounds() async throws {
        try await run { server, path in
            let body = #"{"name":"a","scopes":["publish"],"topics":["orders/#"],"rate":"3/h"}"#
            let token = try server.post("/v1/tokens", json: body).json(TokenCreated.self).token
            let json = ["Content-Type: application/json"]
            func post(_ path: String, _ headers: [String], _ body: String) throws -> RawResponse {
                try server.request(
                    "POST", path, headers: headers, token: token, body: Array(body.utf8))
            }

            let outside = try [
                post("/v1/publish?topic=notes/1", [], "x"),
                post("/v1/messages", json, #"{"topic":"order","payload":"x"}"#),
            ]
            for response in outside {
                let problem = try response.problem()
                #expect(problem.status == 403)
                #expect(problem.type == "urn:hermes:problem:topic-not-allowed")
                #expect(problem.detail.contains("\"orders/#\""))
            }
            #expect(server.broker.publications.isEmpty)

            let status = #"{"sales_id":"7","status":"APPROVED"}"#
            #expect(try post("/v1/publish?topic=orders/1", [], "x").status == 200)
            #expect(try post("/v1/orders/1/status", json, status).status == 200)
            let lines =
                #"{"topic":"orders","payload":"x"}"# + "\n" + #"{"topic":"orders","payload":"y"}"#
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch", headers: ["Content-Type: application/x-ndjson"],
                    token: token, body: Array(lines.utf8)) + lines)
            _ = try connection.readHead()
            let batch = String(decoding: try connection.readChunks(), as: UTF8.self)
            #expect(batch.contains(#"{"line":1,"dropped""#))
            #expect(batch.contains("rate-exceeded"))
            let above = try post("/v1/messages", json, #"{"topic":"orders","payload":"x"}"#)
            #expect(try above.problem().type == "urn:hermes:problem:rate-exceeded")
            #expect(above.status == 429)
            // A third of an hour for each, the first of which has just begun to come back.
            let seconds = try #require(Int(above["Retry-After"] ?? ""))
            #expect((1_190...1_200).contains(seconds))
            #expect(server.broker.publications.count == 3)
        }
    }

    @Test("a rate comes back evenly, and a period's worth may come at once")
    func rate() throws {
        let bounds = PublishBounds(counters: AdminCounters())
        let caller = Caller(
            name: "a", scopes: .admin,
            bounds: TokenBounds(topics: [], rate: TokenRate("10/s")))
        let start = ContinuousClock.now
        func admitted(atMilliseconds: Int) -> Int {
            var count = 0
            while bounds.charge(caller, at: start + .milliseconds(atMilliseconds)) == nil {
                count += 1
            }
            return count
        }
        #expect(admitted(atMilliseconds: 0) == 10)
        #expect(admitted(atMilliseconds: 99) == 0)
        #expect(admitted(atMilliseconds: 100) == 1)
        #expect(admitted(atMilliseconds: 350) == 2)
        #expect(admitted(atMilliseconds: 60_000) == 10)
        let other = Caller(name: "b", scopes: .admin, bounds: caller.bounds)
        #expect(bounds.charge(other, at: start) == nil)
        bounds.refund(caller, at: start + .seconds(60))
        #expect(admitted(atMilliseconds: 60_000) == 1)
    }

    @Test("without a token file there are no tokens to make")
    func withoutFile() async throws {
        try await TestServer.run { server in
            let problem = try server.post("/v1/tokens", json: #"{"name":"a","scopes":["read"]}"#)
                .problem()
            #expect(problem.type == "urn:hermes:problem:token-file")
        }
    }
}
