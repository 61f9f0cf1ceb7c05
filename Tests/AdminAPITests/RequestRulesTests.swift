import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Rules for every request")
struct RequestRulesTests {
    // MARK: Routes and methods

    @Test(
        "a path without a route is 404, with or without a token",
        arguments: [
            "/", "/v1", "/v1/", "/v1/clients/", "/v1/clients/a/b", "/healthz/", "//healthz",
            "/v1/orders//status", "/V1/status",
        ])
    func notFound(path: String) async throws {
        try await TestServer.run { server in
            for token in [nil, TestServer.token] {
                let problem = try server.request("GET", path, token: token).problem()
                #expect(problem.status == 404)
                #expect(problem.type == "urn:hermes:problem:route-not-found")
            }
        }
    }

    @Test(
        "a wrong method is 405 and names the right ones",
        arguments: [
            ("GET", "/v1/publish?topic=t", "POST"), ("PUT", "/v1/messages", "POST"),
            ("POST", "/v1/clients/a", "GET, HEAD, DELETE"), ("DELETE", "/v1/status", "GET, HEAD"),
            ("OPTIONS", "/v1/clients", "GET, HEAD"), ("TRACE", "/healthz", "GET, HEAD"),
            ("PROPFIND", "/healthz", "GET, HEAD"),
        ])
    func wrongMethod(method: String, path: String, allowed: String) async throws {
        try await TestServer.run { server in
            let response = try server.request(method, path)
            let problem = try response.problem()
            #expect(problem.status == 405)
            #expect(problem.type == "urn:hermes:problem:method-not-allowed")
            #expect(response["Allow"] == allowed)
        }
    }

    @Test(
        "a whole URL as target is refused unless its host is that of Host",
        arguments: [
            ("http://localhost:8080/healthz", "localhost:8080", 200),
            ("http://LOCALHOST/healthz", "localhost", 200),
            ("http://other.example/healthz", "localhost", 400),
            ("http://localhost:1/healthz", "localhost:2", 400),
            ("https://user@localhost/healthz", "localhost", 400),
            ("http://other.example", "localhost", 400),
            ("http://?http://localhost/healthz", "localhost", 400),
        ])
    func absoluteTargets(target: String, host: String, status: Int) async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try connection.readResponse().status == status)
        }
    }

    @Test("a target that is no path is refused")
    func noPath() async throws {
        try await TestServer.run { server in
            let problem = try server.request("OPTIONS", "*").problem()
            #expect(problem.type == "urn:hermes:problem:malformed-request")
        }
    }

    // MARK: Tokens

    @Test(
        "without the token nothing but health and the document answers",
        arguments: [
            nil, "", "Bearer", "Bearer ", "Bearer test-token-012345678",
            "Bearer test-token-01234567890", "Bearer TEST-TOKEN-0123456789",
            "Basic test-token-0123456789", "Bearer test-token-0123456789 x",
        ] as [String?])
    func unauthorized(authorization: String?) async throws {
        try await TestServer.run { server in
            for (method, path) in [
                ("POST", "/v1/publish?topic=t"), ("POST", "/v1/messages"),
                ("POST", "/v1/orders/o/status"), ("GET", "/v1/status"), ("GET", "/v1/clients"),
                ("GET", "/v1/clients/a"), ("DELETE", "/v1/clients/a"),
            ] {
                let response = try server.request(
                    method, path, headers: authorization.map { ["Authorization: " + $0] } ?? [],
                    token: nil)
                let problem = try response.problem()
                #expect(problem.status == 401)
                #expect(problem.type == "urn:hermes:problem:unauthorized")
                #expect(response["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
                #expect(!response.text.contains("test-token"))
            }
            #expect(server.broker.publications.isEmpty)
            #expect(server.broker.disconnected.isEmpty)
        }
    }

    @Test("the scheme's case does not matter")
    func bearerCase() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "GET", "/v1/status", headers: ["Authorization: bearer \(TestServer.token)"],
                token: nil)
            #expect(response.status == 200)
        }
    }

    @Test("the token is checked before the body is read, and the connection ends")
    func tokenBeforeBody() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t", headers: ["Content-Length: 1000000"], token: "x")
            )
            let response = try connection.readResponse()
            #expect(response.status == 401)
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    // MARK: Bodies

    @Test("a declared body above the limit is 413 before it is sent")
    func declaredTooLarge() async throws {
        try await TestServer.run(with: .init { $0.maximumBodyBytes = 1000 }) { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t", headers: ["Content-Length: 1001"]))
            let response = try connection.readResponse()
            let problem = try response.problem()
            #expect(problem.status == 413)
            #expect(problem.type == "urn:hermes:problem:too-large")
            #expect(problem.detail.contains("1000 bytes"))
            #expect(problem.fix.contains("limits.max_packet"))
            #expect(response["Connection"] == "close")
        }
    }

    @Test("a chunked body above the limit is 413 once it is")
    func chunkedTooLarge() async throws {
        try await TestServer.run(with: .init { $0.maximumBodyBytes = 1000 }) { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t", headers: ["Transfer-Encoding: chunked"]))
            try connection.send("400\r\n" + String(repeating: "x", count: 1024) + "\r\n")
            #expect(try connection.readResponse().problem().status == 413)
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("a body where none belongs is refused", arguments: ["GET", "DELETE"])
    func unexpectedBody(method: String) async throws {
        try await TestServer.run { server in
            let refused = try server.request(method, "/v1/clients/a", body: [1]).problem()
            #expect(refused.type == "urn:hermes:problem:unexpected-body")
            let empty = try server.request(method, "/v1/clients/a", body: [])
            #expect(try empty.problem().type == "urn:hermes:problem:client-not-found")
        }
    }

    @Test("Expect: 100-continue is answered before the body")
    func expectContinue() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t",
                    headers: ["Expect: 100-continue", "Content-Length: 2"]))
            #expect(try connection.readResponse().status == 100)
            try connection.send("ab")
            #expect(try connection.readResponse().status == 200)
            #expect(server.broker.publications.first?.payload == [0x61, 0x62])
        }
    }

    @Test("a refused request gets no 100 (Continue)")
    func refusedInsteadOfContinue() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?colour=red",
                    headers: ["Expect: 100-continue", "Content-Length: 2"]))
            #expect(try connection.readResponse().status == 400)
        }
    }

    @Test("another expectation is 417")
    func otherExpectation() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "POST", "/v1/publish?topic=t", headers: ["Expect: a miracle"], body: [1])
            let problem = try response.problem()
            #expect(problem.status == 417)
            #expect(problem.field == "Expect")
        }
    }

    @Test("JSON in another encoding than UTF-8 is 415")
    func charset() async throws {
        try await TestServer.run { server in
            for (type, status) in [
                ("application/json; charset=utf-16", 415),
                ("application/json;charset=\"latin1\"", 415),
                ("application/json; charset=UTF-8", 200), ("Application/JSON;x=y", 200),
            ] {
                let response = try server.request(
                    "POST", "/v1/messages", headers: ["Content-Type: " + type],
                    body: Array(#"{"topic":"t","payload":""}"#.utf8))
                #expect(response.status == status, "\(type)")
            }
        }
    }

    // MARK: Headers

    @Test(
        "a header that would change the meaning is refused and not passed over",
        arguments: [
            "If-Match", "If-Unmodified-Since", "If-Range", "Range", "Content-Range",
            "X-HTTP-Method-Override", "X-HTTP-Method",
            "X-Method-Override", "Content-Transfer-Encoding",
        ])
    func unsupportedHeader(name: String) async throws {
        try await TestServer.run { server in
            for (method, path) in [("POST", "/v1/publish?topic=t"), ("GET", "/v1/status")] {
                let problem = try server.request(method, path, headers: [name + ": x"]).problem()
                #expect(problem.type == "urn:hermes:problem:unsupported-header")
                #expect(problem.status == 400)
                #expect(problem.field == name)
            }
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("If-None-Match asks GET for a version, and means nothing else")
    func ifNoneMatch() async throws {
        try await TestServer.run { server in
            func status(_ method: String, _ path: String, _ tag: String) throws -> RawResponse {
                try server.request(method, path, headers: ["If-None-Match: " + tag])
            }
            // This answer has no version that could be named.
            #expect(try status("GET", "/v1/status", "\"a\"").status == 200)
            let any = try status("GET", "/v1/status", "*")
            #expect(any.status == 304)
            #expect(any.body.isEmpty)
            #expect(try status("GET", "/v1/clients/missing", "*").status == 404)
            #expect(
                try status("POST", "/v1/publish?topic=t", "*").problem().field == "If-None-Match")
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("If-Modified-Since is passed over: no answer has a time of its last change")
    func ifModifiedSince() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "GET", "/v1/status",
                headers: ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"])
            #expect(response.status == 200)
        }
    }

    @Test("a wrong Idempotency-Key is a wrong header of well-formed HTTP")
    func wrongKey() async throws {
        try await TestServer.run { server in
            let problem = try server.request(
                "POST", "/v1/publish?topic=t", headers: ["Idempotency-Key: a b"]
            ).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-header")
            #expect(problem.title == "A header is wrong")
            #expect(problem.status == 400)
        }
    }

    // MARK: HTTP/1.0

    @Test(
        "HTTP/1.0 needs no Host, and its connection ends with the answer",
        arguments: [
            "GET /healthz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n",
            "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET http://localhost/healthz HTTP/1.0\r\n\r\n",
            "GET /healthz HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
            "OPTIONS /healthz HTTP/1.0\r\n\r\n",
        ])
    func formerVersion(request: String) async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(request)
            let response = try connection.readResponse()
            #expect(response.status == (request.hasPrefix("GET") ? 200 : 405))
            #expect(response["Connection"] == "close")
            #expect(try connection.isClosedByServer())
        }
    }

    @Test("a stream for HTTP/1.0 has no chunks and ends with the connection")
    func formerStream() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                "GET /v1/events HTTP/1.0\r\nAuthorization: Bearer \(TestServer.token)\r\n\r\n")
            let head = try connection.readHead()
            #expect(head.status == 200)
            #expect(head["Transfer-Encoding"] == nil)
            server.stop()
            let body = String(decoding: try connection.readToEnd(), as: UTF8.self)
            #expect(body.hasPrefix("event: "))
        }
    }

    @Test("a foreign Host in HTTP/1.0 is refused as in HTTP/1.1")
    func formerForeignHost() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send("GET /healthz HTTP/1.0\r\nHost: example.com\r\n\r\n")
            #expect(try connection.readResponse().status == 421)
        }
    }

    @Test(
        "HEAD of a stream has no length and no body, and the connection goes on",
        arguments: ["/v1/events", "/v1/trace?topic=%23"])
    func headOfStream(path: String) async throws {
        let stub = StubBroker { $0.traceLines = [TraceLines(lines: [], isOver: true)] }
        try await TestServer.run(stub) { server in
            let connection = try server.connect()
            for _ in 0..<40 {
                try connection.send(TestServer.head("HEAD", path))
                let head = try connection.readResponse(toHead: true)
                #expect(head.status == 200)
                #expect(head["Content-Length"] == nil)
                #expect(head["Transfer-Encoding"] == "chunked")
            }
            try connection.send(TestServer.head("GET", "/healthz"))
            #expect(try connection.readResponse().status == 200)
            // Without a body to end them with, the traces would stay until their time.
            #expect(server.broker.endedTraces == server.broker.traces.count)
        }
    }

    // MARK: Hosts and origins

    @Test(
        "names of the machine itself are hosts",
        arguments: [
            "localhost", "localhost:1", "LOCALHOST:65535", "127.0.0.1", "127.9.9.9:80",
            "[::1]:8080",
        ])
    func loopbackHosts(host: String) async throws {
        try await TestServer.run { server in
            let response = try health(server, host: ["Host: " + host])
            #expect(response.status == 200)
        }
    }

    @Test(
        "another name is 421 on a loopback listener",
        arguments: [
            "example.com", "localhost.example.com", "127.0.0.1.example.com:8080", "10.0.0.1",
            "[::2]:80", "127.0.0", "127.0.0.256",
        ])
    func foreignHosts(host: String) async throws {
        try await TestServer.run { server in
            let problem = try health(server, host: ["Host: " + host]).problem()
            #expect(problem.status == 421)
            #expect(problem.type == "urn:hermes:problem:wrong-host")
        }
    }

    @Test(
        "a missing, repeated or malformed Host gets 400",
        arguments: [
            [], ["Host: localhost", "Host: localhost"], ["Host: "], ["Host: a b"],
            ["Host: localhost:port"], ["Host: [::1"], ["Host: user@localhost"],
        ])
    func malformedHosts(host: [String]) async throws {
        try await TestServer.run { server in
            let problem = try health(server, host: host).problem()
            #expect(problem.status == 400)
            #expect(problem.type == "urn:hermes:problem:malformed-request")
            #expect(problem.field == "Host")
        }
    }

    @Test("a page of another site is refused, one of this server is not")
    func origins() async throws {
        try await TestServer.run { server in
            for origin in [
                "http://example.com", "null", "http://localhost:9", "https://localhost.x",
            ] {
                let problem = try server.request(
                    "GET", "/v1/status", headers: ["Origin: " + origin]
                ).problem()
                #expect(problem.status == 403, "\(origin)")
                #expect(problem.type == "urn:hermes:problem:cross-origin")
            }
            let same = try server.request(
                "GET", "/v1/status", headers: ["Origin: http://localhost"])
            #expect(same.status == 200)
        }
    }

    @Test("a listener on another address takes any host")
    func anyHost() throws {
        for address in ["0.0.0.0", "::", "192.0.2.7"] {
            let policy = HostPolicy(boundTo: address)
            try policy.check(host: "hermes.example:8080", repeated: false, origin: nil)
        }
        for address in ["127.0.0.1", "::1", "localhost"] {
            #expect(throws: Problem.self) {
                try HostPolicy(boundTo: address).check(
                    host: "hermes.example", repeated: false, origin: nil)
            }
        }
    }

    private func health(_ server: TestServer, host: [String]) throws -> RawResponse {
        let connection = try server.connect()
        let lines = ["GET /healthz HTTP/1.1"] + host
        try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
        return try connection.readResponse()
    }
}
