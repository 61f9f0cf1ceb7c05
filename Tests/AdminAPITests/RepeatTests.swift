import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Repeats over HTTP")
struct RepeatTests {
    private static let past = (first: "2020-01-01T09:00:00+08:00", same: "2020-01-01T01:00:00Z")

    private static func lines(_ range: Range<Int>) -> String {
        range.map { #"{"topic":"orders/1","payload":"\#($0)","idempotency_key":"k\#($0)"}"# }
            .joined(separator: "\n")
    }

    private func batch(
        _ server: TestServer, _ lines: String, _ token: String = TestServer.token,
        to path: String = "/v1/messages/batch"
    ) throws -> [Substring] {
        let connection = try server.connect()
        try connection.send(
            TestServer.head(
                "POST", path, headers: ["Content-Type: application/x-ndjson"], token: token,
                body: Array(lines.utf8)) + lines)
        _ = try connection.readHead()
        return String(decoding: try connection.readChunks(), as: UTF8.self).split(separator: "\n")
    }

    private func withToken(
        rate: String, _ body: (TestServer, String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { folder in
            let checks = try TokenChecks(path: folder + "/tokens", logger: CapturedLog().logger)
            let changes = TestServer.Changes { $0.tokens = checks }
            try await TestServer.run(StubBroker { $0.keepsKeys = true }, with: changes) { server in
                let made = try server.post(
                    "/v1/tokens",
                    json: #"{"name":"bound","scopes":["publish"],"rate":"\#(rate)"}"#)
                try await body(server, try made.json(TokenCreated.self).token)
            }
        }
    }

    // MARK: The time of delivery

    @Test(
        "a time that is over keeps no repeat from its answer, written in whatever offset",
        arguments: [
            (
                "/v1/messages",
                #"{"topic":"t","payload":"x","idempotency_key":"k","deliver_at":"%"}"#
            ),
            (
                "/v1/pushes",
                #"""
                {"to":{"clients":["a","b"]},"message":{"topic":"t","payload":"x"},
                 "idempotency_key":"k","deliver_at":"%"}
                """#
            ),
        ])
    func deliverAt(path: String, body: String) async throws {
        try await TestServer.run(StubBroker { $0.keepsKeys = true }) { server in
            let (first, same) = (
                body.replacing("%", with: Self.past.first),
                body.replacing("%", with: Self.past.same)
            )
            // Nothing has come under this key, so the time is judged.
            let refused = try server.post(path, json: first).problem()
            #expect(refused.status == 400)
            #expect(refused.field == "deliver_at")
            #expect(server.broker.publications.isEmpty && server.broker.pushRequests.isEmpty)
            server.broker.acceptAsked()

            let repeated = try server.post(path, json: same)
            #expect((200...202).contains(repeated.status))
            #expect(repeated.text.contains(#""duplicate":true"#))
            let line = same.replacing("\n", with: "")
            let results = try batch(server, line + "\n" + line, to: path + "/batch")
            #expect(results.count == 2)
            #expect(results.allSatisfy { $0.contains(#""duplicate":true"#) })

            let other = try server.post(path, json: same.replacing(#""x""#, with: #""y""#))
            #expect(try other.problem().type == "urn:hermes:problem:idempotency-key-reused")
            let fresh = same.replacing(#""k""#, with: #""n""#)
            #expect(try server.post(path, json: fresh).problem().field == "deliver_at")
            let late = try batch(server, fresh.replacing("\n", with: ""), to: path + "/batch")
            #expect(late.first?.contains(#""field":"deliver_at""#) == true)
            #expect(server.broker.publications.isEmpty && server.broker.pushRequests.isEmpty)
        }
    }

    @Test("clients and tags of a push mean the same in any order")
    func order() async throws {
        try await TestServer.run(StubBroker { $0.keepsKeys = true }) { server in
            func push(_ target: String, key: String) throws -> RawResponse {
                try server.post(
                    "/v1/pushes",
                    json: #"""
                        {"to":\#(target),"message":{"topic":"t","payload":"x"},
                         "idempotency_key":"\#(key)"}
                        """#)
            }
            for (key, one, other) in [
                ("c", #"{"clients":["a","b"]}"#, #"{"clients":["b","a"]}"#),
                ("t", #"{"tags":{"any":["a","b"]}}"#, #"{"tags":{"any":["b","a"]}}"#),
            ] {
                #expect(try push(one, key: key).status == 202)
                #expect(try push(other, key: key).text.contains(#""duplicate":true"#))
            }
            let moved = try push(#"{"tags":{"any":["a"],"all":["b"]}}"#, key: "t")
            #expect(moved.status == 422)
        }
    }

    // MARK: The rate

    @Test("repeats in a batch count for no rate, so that sending all again comes to the rest")
    func batches() async throws {
        try await withToken(rate: "10/h") { server, token in
            func counts(_ lines: String) throws -> (
                published: Int, repeated: Int, late: [Substring]
            ) {
                let results = try batch(server, lines, token)
                return (
                    results.count { $0.contains(#""duplicate":false"#) },
                    results.count { $0.contains(#""duplicate":true"#) },
                    results.filter { $0.contains("rate-exceeded") }
                )
            }
            #expect(try counts(Self.lines(0..<6)).published == 6)
            // All six again, and six more, of which the rate has room for four.
            let again = try counts(Self.lines(0..<12))
            #expect(again.repeated == 6 && again.published == 4 && again.late.count == 2)
            #expect(again.late.allSatisfy { !$0.contains("header") && !$0.contains("Retry-After") })
            let last = try counts(Self.lines(0..<10))
            #expect(last.repeated == 10 && last.late.isEmpty)
            // The same key twice in one batch is one message.
            #expect(try counts(Self.lines(9..<10) + "\n" + Self.lines(9..<10)).repeated == 2)
            #expect(server.broker.publications.count == 10)
        }
    }

    @Test("a repeat is answered above the rate, and takes nothing of it below")
    func single() async throws {
        try await withToken(rate: "2/h") { server, token in
            func post(_ key: String) throws -> Int {
                try server.request(
                    "POST", "/v1/publish?topic=t", headers: ["Idempotency-Key: \(key)"],
                    token: token, body: [1]
                ).status
            }
            let answers = try ["a", "a", "a", "a", "b", "c", "a"].map(post)
            #expect(answers == [200, 200, 200, 200, 200, 429, 200])
            #expect(
                try server.request(
                    "POST", "/v1/publish?topic=t", token: token, body: [1]
                ).status == 429)
            #expect(server.broker.publications.count == 2)
        }
    }
}
