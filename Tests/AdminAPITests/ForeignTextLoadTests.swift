import Testing

@testable import AdminAPI

/// Requests that hold runs of combining marks: as `String`s they take the HTTP thread seconds.
@Suite("Requests of combining marks")
struct ForeignTextLoadTests {
    /// Marks of two classes, of which Unicode puts the second before the first.
    private static let marks =
        String(repeating: "\u{301}", count: 40_000) + String(repeating: "\u{316}", count: 40_000)

    private func within(_ limit: Duration, _ work: () throws -> Void) rethrows {
        let time = try ContinuousClock().measure(work)
        #expect(time < limit, "\(time)")
    }

    @Test("a body of 300 KB is refused, and the server answers others at once")
    func body() async throws {
        try await TestServer.run { server in
            try within(.seconds(10)) {
                let response = try server.post(
                    "/v1/messages", json: "{\"a\(Self.marks)\":1,\"b\(Self.marks)\":1}")
                #expect(response.status == 400)
                #expect(try response.problem().detail.contains("is not known here"))
                #expect(try server.request("GET", "/healthz").status == 200)
            }
        }
    }

    @Test("a value of 160 KB for a key of the configuration is refused for its length")
    func value() async throws {
        try await TestServer.run { server in
            try within(.seconds(10)) {
                let response = try server.request(
                    "PATCH", "/v1/config", headers: ["Content-Type: application/json"],
                    body: Array(#"{"limits.queue_messages":"\#(Self.marks)"}"#.utf8))
                #expect(try response.problem().detail.contains("has 160000 bytes"))
                let key = try server.request(
                    "PATCH", "/v1/config", headers: ["Content-Type: application/json"],
                    body: Array(#"{"\#(Self.marks)":"1"}"#.utf8))
                #expect(key.status == 400)
            }
        }
    }

    @Test("headers and queries are compared by bytes")
    func heads() throws {
        within(.seconds(10)) {
            for _ in 0..<20 {
                #expect(throws: Problem.self) {
                    try HostPolicy.any.check(
                        host: "h", repeated: false, origin: "http://\(Self.marks)")
                }
                #expect(throws: Problem.self) {
                    try QueryItems("limit\(Self.marks)=1", known: ["limit", "cursor"])
                }
            }
        }
    }

    @Test("an origin is its server's whatever the case of its letters, and no other")
    func origins() throws {
        for origin in ["http://H.example:8080", "https://h.EXAMPLE:8080"] {
            try HostPolicy.any.check(host: "h.example:8080", repeated: false, origin: origin)
        }
        for origin in [
            "http://h.example", "ftp://h.example:8080", "http://h.example:8080\u{301}", "null", "",
        ] {
            #expect(throws: Problem.self) {
                try HostPolicy.any.check(host: "h.example:8080", repeated: false, origin: origin)
            }
        }
    }

    @Test(
        "the charset of a body is read by bytes",
        arguments: [
            ("application/json; charset=\"UTF-8\"", 400), ("application/json;charset=latin1", 415),
            ("application/json; a=b ; CHARSET = utf-8", 400), ("application/json;", 400),
        ])
    func charsets(type: String, status: Int) async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "POST", "/v1/messages", headers: ["Content-Type: \(type)"], body: Array("{}".utf8))
            #expect(response.status == status)
        }
    }
}
