import Credentials
import Glibc
import Hummingbird
import PlainText
import RequestText
import Testing

@testable import AdminAPI

/// A token file and its server.
private struct Tokens {
    let path: String

    /// Makes a token and returns its secret.
    @discardableResult
    func make(_ name: String, _ scopes: String, expires: UTCTime? = nil) throws -> String {
        let secret = TokenSecret.prefix + TokenSecret.make()
        let entry = TokenFile.Entry(
            name: try TokenName(name), scopes: try #require(TokenScopes(parsing: scopes)),
            created: .now(), expires: expires, digest: SHA256Digest(of: secret.utf8))
        let addition = try TokenFile.update(path: path, creating: true) { $0.add(entry) }
        #expect(addition == .added)
        return secret
    }

    func revoke(_ name: String) throws {
        let name = try TokenName(name)
        let wasThere = try TokenFile.update(path: path, creating: false) { $0.remove(name) }
        #expect(wasThere)
    }

    func write(_ text: String) throws {
        let stream = try #require(fopen(path, "w"))
        fputs(text, stream)
        fclose(stream)
    }
}

@Suite("Tokens and scopes")
struct ScopeTests {
    /// Runs a server with a token file that the body may change.
    private func withServer(
        failuresPerMinute: Int = 30,
        _ body: (TestServer, Tokens, CapturedLog) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let log = CapturedLog()
            let tokens = Tokens(path: directory + "/tokens")
            let checks = try TokenChecks(path: tokens.path, logger: log.logger)
            let changes = TestServer.Changes {
                $0.tokens = checks
                $0.maximumFailuresPerMinute = failuresPerMinute
            }
            try await TestServer.run(with: changes, logger: log.logger) { server in
                try await body(server, tokens, log)
            }
        }
    }

    /// All requests that need a token, with their scopes.
    private static let requests: [(method: String, path: String, scope: TokenScope)] = [
        ("POST", "/v1/publish?topic=t", .publish), ("POST", "/v1/messages", .publish),
        ("POST", "/v1/messages/batch", .publish), ("POST", "/v1/orders/batch", .publish),
        ("POST", "/v1/orders/o/status", .publish), ("GET", "/v1/status", .read),
        ("GET", "/metrics", .read), ("HEAD", "/metrics", .read), ("GET", "/v1/clients", .read),
        ("GET", "/v1/clients/a", .read), ("GET", "/v1/clients/a/queue", .read),
        ("GET", "/v1/messages/a", .read), ("GET", "/v1/scheduled", .read),
        ("GET", "/v1/scheduled/a", .read), ("PATCH", "/v1/scheduled/a", .publish),
        ("DELETE", "/v1/scheduled/a", .publish), ("GET", "/v1/clients/a/tags", .read),
        ("GET", "/v1/clients/a/device", .read), ("PUT", "/v1/clients/a/device", .publish),
        ("DELETE", "/v1/clients/a/device", .publish), ("GET", "/v1/devices", .read),
        ("GET", "/v1/wakes", .read),
        ("POST", "/v1/clients/a/device/test", .publish),
        ("POST", "/v1/clients/a/device/resume", .publish),
        ("POST", "/v1/clients/a/device/retry", .publish),
        ("POST", "/v1/devices/resume", .admin), ("POST", "/v1/devices/retry", .admin),
        ("PUT", "/v1/clients/a/tags", .publish), ("GET", "/v1/tags", .read),
        ("GET", "/v1/tags/a/clients", .read), ("GET", "/v1/arrivals", .read),
        ("GET", "/v1/clients/a/history", .read),
        ("GET", "/v1/clients/a/explain", .read), ("GET", "/v1/events", .read),
        ("GET", "/v1/lost-connections", .read), ("POST", "/v1/pushes", .publish),
        ("POST", "/v1/pushes/batch", .publish), ("GET", "/v1/pushes", .read),
        ("GET", "/v1/pushes/a", .read),
        ("DELETE", "/v1/pushes/a", .publish),
        ("GET", "/v1/listeners", .read),
        ("GET", "/v1/config", .read), ("PATCH", "/v1/config", .admin),
        ("POST", "/v1/config/reload", .admin),
        ("GET", "/v1/subscriptions", .read), ("GET", "/v1/receivers", .read),
        ("GET", "/v1/retained", .read), ("GET", "/v1/retained/message", .read),
        ("DELETE", "/v1/retained", .admin), ("GET", "/v1/trace", .admin),
        ("DELETE", "/v1/clients/a", .admin), ("DELETE", "/v1/clients/a/queue", .admin),
        ("DELETE", "/v1/clients/a/session", .admin),
        ("POST", "/v1/store/accept-loss", .admin), ("POST", "/v1/tokens", .admin),
        ("GET", "/v1/tokens", .admin), ("DELETE", "/v1/tokens/none", .admin),
        ("POST", "/v1/backup?directory=/nonexistent", .admin),
        ("GET", "/v1/bans", .read), ("POST", "/v1/bans", .admin),
        ("DELETE", "/v1/bans/a", .admin), ("GET", "/v1/lockouts", .read),
        ("GET", "/v1/troubles", .read),
        ("GET", "/v1/drain", .read), ("POST", "/v1/drain", .admin),
        ("DELETE", "/v1/drain", .admin), ("DELETE", "/v1/lockouts", .admin),
        ("GET", "/v1/users", .admin), ("PUT", "/v1/users/a", .admin),
        ("DELETE", "/v1/users/a", .admin),
        ("POST", "/v1/users/import", .admin), ("GET", "/v1/access-rules", .admin),
        ("PUT", "/v1/access-rules", .admin),
    ]

    @Test("every route asks for its scope, and the table of this test has every route")
    func table() throws {
        let table = try TestServer.routeTable()
        for (method, path, scope) in Self.requests where method != "HEAD" {
            let target = try #require(RequestTarget(path))
            let method = try #require(HTTPRequest.Method(rawValue: method))
            let (_, route, _) = try table.match(method, target)
            #expect(route.access.scope == scope, "\(path)")
        }
        let open = table.routes.filter { $0.access == .open }.map(\.path)
        #expect(
            Set(open) == [
                "/healthz", "/readyz", "/v1/openapi.json", "/ui", "/ui/", "/ui/page.css",
                "/ui/page.js", "/ui/tail.js", "/ui/mqtt.js", "/ui/text.js",
            ])
        #expect(table.routes.count == Self.requests.count - 1 + open.count)
    }

    @Test("a token's scopes decide; other requests get 403 with the missing scope")
    func scopes() async throws {
        try await withServer { server, tokens, _ in
            let secrets = [
                (try tokens.make("p", "publish"), [TokenScope.publish]),
                (try tokens.make("r", "read"), [.read]),
                (try tokens.make("pr", "publish,read"), [.publish, .read]),
                (try tokens.make("a", "admin"), TokenScope.allCases),
                (TestServer.token, TokenScope.allCases),
            ]
            for (secret, granted) in secrets {
                for (method, path, scope) in Self.requests {
                    let response = try server.request(method, path, token: secret)
                    guard !granted.contains(scope) else {
                        #expect(response.status != 401 && response.status != 403, "\(path)")
                        continue
                    }
                    #expect(response.status == 403, "\(method) \(path)")
                    #expect(
                        response["WWW-Authenticate"]?.contains(
                            "error=\"insufficient_scope\", scope=\"\(scope.rawValue)\"") == true)
                    if method == "HEAD" { continue }
                    let problem = try response.problem()
                    #expect(problem.type == "urn:hermes:problem:missing-scope")
                    #expect(problem.detail.contains("this request needs \(scope.rawValue)."))
                }
            }
        }
    }

    @Test("a new token counts at once, a revoked one no longer, on one and the same connection")
    func revocation() async throws {
        try await withServer { server, tokens, _ in
            let connection = try server.connect()
            func status(_ secret: String) throws -> Int {
                try connection.send(TestServer.head("GET", "/v1/status", token: secret))
                return try connection.readResponse().status
            }
            let first = try tokens.make("one", "read")
            #expect(try status(first) == 200)
            let second = try tokens.make("two", "read")
            #expect(try status(second) == 200)
            try tokens.revoke("one")
            #expect(try status(first) == 401)
            #expect(try status(second) == 200)
            unlink(tokens.path)
            #expect(try status(second) == 401)
            #expect(try status(TestServer.token) == 200)
        }
    }

    @Test("a token that is revoked while its batch goes on ends the batch within a second or so")
    func revocationDuringBatch() async throws {
        try await withServer { server, tokens, _ in
            let secret = try tokens.make("one", "publish")
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/messages/batch",
                    headers: [
                        "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked",
                    ], token: secret))
            #expect(try connection.readHead().status == 200)
            let line = #"{"topic":"t","payload":"x"}"# + "\n"
            let chunk = String(line.utf8.count, radix: 16) + "\r\n" + line + "\r\n"
            func result() throws -> String {
                try connection.send(chunk)
                return String(decoding: try connection.readChunk(), as: UTF8.self)
            }
            #expect(try result().contains("message_id"))
            try tokens.revoke("one")
            let begin = ContinuousClock.now
            var last = try result()
            while last.contains("message_id"), ContinuousClock.now - begin < .seconds(20) {
                last = try result()
            }
            #expect(last.contains("urn:hermes:problem:unauthorized"))
            #expect(try connection.readChunk() == [])
        }
    }

    @Test("an expired token is refused, and its holder told since when")
    func expiry() async throws {
        try await withServer { server, tokens, log in
            let end = UTCTime(clamping: UTCTime.now().unixSeconds - 1)
            let old = try tokens.make("old", "read", expires: end)
            let problem = try server.request("GET", "/v1/status", token: old).problem()
            #expect(problem.status == 401)
            #expect(problem.detail == "The token \"old\" expired at \(end).")
            let lines = log.lines(of: "Admin request without a good token")
            #expect(lines.map { $0.metadata["admin.token_name"] } == ["old"])
            #expect(lines.first?.metadata["admin.reason"] == "expired_token")
            #expect(!log.lines.contains { "\($0)".contains(old) })
            let soon = UTCTime(clamping: UTCTime.now().unixSeconds + 3_600)
            let good = try tokens.make("good", "read", expires: soon)
            #expect(try server.request("GET", "/v1/status", token: good).status == 200)
        }
    }

    @Test("a file that turns bad leaves the tokens as they were, and the log says why, once")
    func badFile() async throws {
        try await withServer { server, tokens, log in
            let secret = try tokens.make("a", "read")
            #expect(try server.request("GET", "/v1/status", token: secret).status == 200)
            try tokens.write("a read nonsense\n")
            for _ in 0..<3 {
                #expect(try server.request("GET", "/v1/status", token: secret).status == 200)
            }
            let lines = log.lines(of: "Token file unusable, tokens stay as they were")
            #expect(lines.count == 1)
            #expect(lines.first?.metadata["problem"]?.contains("tokens:1: ") == true)
            try tokens.write("# none left\n")
            #expect(try server.request("GET", "/v1/status", token: secret).status == 401)
        }
    }

    @Test("mending the file as the log says revokes the tokens removed before")
    func cure() async throws {
        try await withServer { server, tokens, log in
            let secret = try tokens.make("a", "read")
            #expect(try server.request("GET", "/v1/status", token: secret).status == 200)
            try tokens.write("# revoked\n")
            chmod(tokens.path, 0o666)
            #expect(try server.request("GET", "/v1/status", token: secret).status == 200)
            let refused = log.lines(of: "Token file unusable, tokens stay as they were")
            #expect(refused.count == 1)
            #expect(refused.first?.metadata["problem"]?.contains("Run: chmod 600 ") == true)
            // File timestamps advance in steps of the kernel's clock.
            usleep(20_000)
            chmod(tokens.path, 0o600)
            #expect(try server.request("GET", "/v1/status", token: secret).status == 401)
        }
    }

    @Test("a reload knows that the file is another than that in use, also after a refusal")
    func reloadAfterRefusal() throws {
        try withTemporaryDirectory { directory in
            let log = CapturedLog()
            let tokens = Tokens(path: directory + "/tokens")
            try tokens.make("a", "read")
            let checks = try TokenChecks(path: tokens.path, logger: log.logger)
            #expect(checks.isChanged(by: try checks.read()) == false)
            let secret = try tokens.make("b", "read")
            chmod(tokens.path, 0o666)
            #expect(checks.entry(of: secret.utf8) == nil)
            usleep(20_000)
            chmod(tokens.path, 0o600)
            let read = try checks.read()
            #expect(checks.isChanged(by: read))
            checks.use(read)
            #expect(checks.entry(of: secret.utf8)?.name.text == "b")
            #expect(!checks.isChanged(by: try checks.read()))
        }
    }

    @Test("a file that is bad at the start is an error")
    func badAtStart() throws {
        try withTemporaryDirectory { directory in
            let tokens = Tokens(path: directory + "/tokens")
            try tokens.write("nonsense\n")
            chmod(tokens.path, 0o600)
            let error = #expect(throws: TokenFileError.self) {
                try TokenChecks(path: tokens.path, logger: CapturedLog().logger)
            }
            #expect(error?.description.contains("\(tokens.path):1: ") == true)
        }
    }

    @Test("too many unknown tokens are told to wait, and a good one from there still counts")
    func guessing() async throws {
        try await withServer(failuresPerMinute: 3) { server, tokens, log in
            let good = try tokens.make("a", "read")
            for number in 0..<3 {
                #expect(
                    try server.request("GET", "/v1/status", token: "wrong-\(number)").status == 401)
            }
            let response = try server.request("GET", "/v1/status", token: "wrong-again")
            let problem = try response.problem()
            #expect(problem.status == 429)
            #expect(problem.type == "urn:hermes:problem:too-many-failures")
            #expect(["19", "20"].contains(response["Retry-After"]))
            #expect(try server.request("GET", "/v1/status", token: good).status == 200)
            // Without a token, no failure is counted.
            #expect(try server.request("GET", "/v1/status", token: nil).status == 401)
            let lines = log.lines(of: "Admin request without a good token")
            let reasons = lines.map { $0.metadata["admin.reason"] }
            #expect(reasons == ["unknown_token", "missing_token"])

            let metrics = try server.request("GET", "/metrics", token: good).text
            for (reason, count) in [
                ("missing_token", 1), ("unknown_token", 3), ("expired_token", 0),
                ("missing_scope", 0), ("too_many_failures", 1),
            ] {
                let line = "\nhermes_admin_refused_total{reason=\"\(reason)\"} \(count)\n"
                #expect(metrics.contains(line), "\(reason)")
            }
        }
    }

    @Test("the log names the token of each change and publish, and never a secret")
    func whoDidWhat() async throws {
        try await withServer { server, tokens, log in
            let publisher = try tokens.make("billing", "publish")
            let admin = try tokens.make("ops", "admin")
            for _ in 0..<5 {
                _ = try server.request("POST", "/v1/publish?topic=t", token: publisher, body: [])
            }
            _ = try server.request("POST", "/v1/publish?topic=t", token: admin, body: [])
            server.broker.change { $0.details["phone"] = StubBroker.detail("phone") }
            _ = try server.request("DELETE", "/v1/clients/phone", token: admin)
            _ = try server.request("DELETE", "/v1/clients/nobody", token: admin)
            _ = try server.request("DELETE", "/v1/clients/phone", token: publisher)

            let published = log.lines(of: "Published over HTTP")
            #expect(published.map { $0.metadata["admin.token_name"] } == ["billing", "ops"])
            #expect(published.allSatisfy { $0.level == .info })
            let changed = log.lines(of: "Administrative request carried out")
            #expect(changed.map { $0.metadata["admin.token_name"] } == ["ops"])
            #expect(changed.first?.metadata["http.path"] == "/v1/clients/phone")
            let refused = log.lines(of: "Token lacks a scope")
            #expect(refused.first?.metadata["admin.token_name"] == "billing")
            #expect(refused.first?.metadata["admin.scope"] == "admin")
            for secret in [publisher, admin, TestServer.token] {
                #expect(!log.lines.contains { "\($0)".contains(secret) })
            }
        }
    }

    @Test("the owner of what a token stores comes with its entry, and stays the same for its name")
    func owner() throws {
        let entry = TokenFile.Entry(
            name: try TokenName("billing"), scopes: .admin, created: .now(), expires: nil,
            digest: SHA256Digest(of: "secret".utf8))
        #expect(entry.name.digest == 0x5027_5EF1_C6D7_AD6B)
        #expect(Caller(entry).owner.rawValue == entry.name.digest)
        #expect(Caller(name: "billing", scopes: .admin).owner == Caller(entry).owner)
    }

    @Test("publishing is a line at once and then one a minute with the count")
    func publishLog() {
        let log = CapturedLog()
        let publishes = PublishLog(logger: log.logger)
        let start = ContinuousClock.now
        let caller = Caller(name: "billing", scopes: .admin)
        for number in 0..<120 { publishes.note(caller, at: start + .seconds(number)) }
        publishes.note(Caller(name: "other", scopes: .admin), at: start)
        publishes.note(caller, at: start + .seconds(120))
        let lines = log.lines(of: "Published over HTTP").map { line in
            [line.metadata["admin.token_name"], line.metadata["admin.messages"]]
        }
        #expect(
            lines == [["billing", "1"], ["billing", "60"], ["other", "1"], ["billing", "60"]])
    }
}
