import BrokerAPI
import Credentials
import Logging
import Testing

@testable import AdminAPI

/// Every route by every bound of a token: its scope, its topics, its rate.
@Suite("Routes and the bounds of tokens")
struct RouteBoundsTests {
    struct Row: Sendable, CustomStringConvertible {
        let method: String
        let path: String
        let scope: TokenScope
        let topics: TopicBound
        let rate: RateBound

        init(
            _ method: String, _ path: String, _ scope: TokenScope, _ topics: TopicBound,
            _ rate: RateBound
        ) {
            self.method = method
            self.path = path
            self.scope = scope
            self.topics = topics
            self.rate = rate
        }

        var description: String { "\(method) \(path)" }
    }

    static let rows = [
        Row("POST", "/v1/publish", .publish, .checked, .messages),
        Row("POST", "/v1/messages", .publish, .checked, .messages),
        Row("POST", "/v1/messages/batch", .publish, .checked, .messages),
        Row("POST", "/v1/orders/batch", .publish, .checked, .messages),
        Row("POST", "/v1/orders/{order_id}/status", .publish, .checked, .messages),
        Row("POST", "/v1/pushes", .publish, .checked, .messages),
        Row("POST", "/v1/pushes/batch", .publish, .checked, .messages),
        Row("DELETE", "/v1/pushes/{id}", .publish, .filtered, .untouched),
        Row("PATCH", "/v1/scheduled/{id}", .publish, .filtered, .untouched),
        Row("DELETE", "/v1/scheduled/{id}", .publish, .filtered, .untouched),
        Row("PUT", "/v1/clients/{id}/device", .publish, .refused, .requests),
        Row("DELETE", "/v1/clients/{id}/device", .publish, .refused, .requests),
        Row("POST", "/v1/clients/{id}/device/test", .publish, .refused, .requests),
        Row("POST", "/v1/clients/{id}/device/resume", .publish, .refused, .requests),
        Row("POST", "/v1/clients/{id}/device/retry", .publish, .refused, .requests),
        Row("PUT", "/v1/clients/{id}/tags", .publish, .refused, .requests),
        Row("GET", "/v1/messages/{id}", .read, .filtered, .untouched),
        Row("GET", "/v1/scheduled", .read, .filtered, .untouched),
        Row("GET", "/v1/scheduled/{id}", .read, .filtered, .untouched),
        Row("GET", "/v1/pushes", .read, .filtered, .untouched),
        Row("GET", "/v1/pushes/{id}", .read, .filtered, .untouched),
        Row("GET", "/v1/retained", .read, .filtered, .untouched),
        Row("GET", "/v1/retained/message", .read, .filtered, .untouched),
        Row("GET", "/v1/receivers", .read, .checked, .untouched),
        Row("GET", "/v1/status", .read, .untouched, .untouched),
        Row("GET", "/v1/events", .read, .untouched, .untouched),
        Row("GET", "/v1/listeners", .read, .untouched, .untouched),
        Row("GET", "/v1/config", .read, .untouched, .untouched),
        Row("GET", "/v1/drain", .read, .untouched, .untouched),
        Row("GET", "/v1/lost-connections", .read, .untouched, .untouched),
        Row("GET", "/v1/wakes", .read, .untouched, .untouched),
        Row("GET", "/metrics", .read, .untouched, .untouched),
        Row("GET", "/v1/clients", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}/queue", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}/history", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}/explain", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}/tags", .read, .refused, .untouched),
        Row("GET", "/v1/clients/{id}/device", .read, .refused, .untouched),
        Row("GET", "/v1/devices", .read, .refused, .untouched),
        Row("GET", "/v1/tags", .read, .refused, .untouched),
        Row("GET", "/v1/tags/{tag}/clients", .read, .refused, .untouched),
        Row("GET", "/v1/arrivals", .read, .refused, .untouched),
        Row("GET", "/v1/subscriptions", .read, .refused, .untouched),
        Row("GET", "/v1/bans", .read, .refused, .untouched),
        Row("GET", "/v1/troubles", .read, .refused, .untouched),
        Row("GET", "/v1/lockouts", .read, .refused, .untouched),
        Row("DELETE", "/v1/clients/{id}", .admin, .refused, .untouched),
        Row("POST", "/v1/devices/resume", .admin, .refused, .untouched),
        Row("POST", "/v1/devices/retry", .admin, .refused, .untouched),
        Row("DELETE", "/v1/clients/{id}/queue", .admin, .refused, .untouched),
        Row("DELETE", "/v1/clients/{id}/session", .admin, .refused, .untouched),
        Row("DELETE", "/v1/retained", .admin, .refused, .untouched),
        Row("GET", "/v1/trace", .admin, .refused, .untouched),
        Row("POST", "/v1/store/accept-loss", .admin, .refused, .untouched),
        Row("POST", "/v1/backup", .admin, .refused, .untouched),
        Row("POST", "/v1/tokens", .admin, .refused, .untouched),
        Row("GET", "/v1/tokens", .admin, .refused, .untouched),
        Row("DELETE", "/v1/tokens/{name}", .admin, .refused, .untouched),
        Row("POST", "/v1/bans", .admin, .refused, .untouched),
        Row("DELETE", "/v1/bans/{id}", .admin, .refused, .untouched),
        Row("POST", "/v1/drain", .admin, .refused, .untouched),
        Row("DELETE", "/v1/drain", .admin, .refused, .untouched),
        Row("DELETE", "/v1/lockouts", .admin, .refused, .untouched),
        Row("PATCH", "/v1/config", .admin, .refused, .untouched),
        Row("POST", "/v1/config/reload", .admin, .refused, .untouched),
        Row("GET", "/v1/users", .admin, .refused, .untouched),
        Row("PUT", "/v1/users/{name}", .admin, .refused, .untouched),
        Row("DELETE", "/v1/users/{name}", .admin, .refused, .untouched),
        Row("POST", "/v1/users/import", .admin, .refused, .untouched),
        Row("GET", "/v1/access-rules", .admin, .refused, .untouched),
        Row("PUT", "/v1/access-rules", .admin, .refused, .untouched),
    ]

    /// A route that is not in ``rows`` is open, which is what another test lists.
    @Test("every route with a token has its row here, and declares the same")
    func table() throws {
        let table = try TestServer.routeTable()
        let routes = table.routes.filter { $0.access != .open }
        for route in routes {
            let row = Self.rows.first {
                $0.method == route.method.rawValue && $0.path == route.path
            }
            let declared = row.map {
                RouteAccess.scope($0.scope, topics: $0.topics, rate: $0.rate)
            }
            #expect(declared == route.access, "\(route.method) \(route.path)")
        }
        #expect(routes.count == Self.rows.count)
    }

    // MARK: Requests

    /// A request for a row, on the topic "orders/1" or another one.
    private struct Example {
        var target: String
        var type: String?
        var body: String?

        /// The topic is the token's if it is `mine`.
        init(_ row: Row, mine: Bool) {
            let topic = mine ? "orders/1" : "private/1"
            let message = #"{"topic":"\#(topic)","payload":"x"}"#
            target = row.path.replacing("{tag}", with: "t")
                .replacing(
                    "{id}", with: row.path.contains("clients") ? "a" : mine ? "mine" : "other"
                )
                .replacing("{order_id}", with: "1").replacing("{name}", with: "none")
            switch row.path {
            case "/v1/publish", "/v1/receivers", "/v1/retained/message":
                target += "?topic=\(topic)"
                body = row.method == "POST" ? "x" : nil
            case "/v1/messages", "/v1/messages/batch": body = message
            case "/v1/orders/{order_id}/status":
                body = #"{"sales_id":"\#(mine ? "7" : "8")","status":"APPROVED"}"#
            case "/v1/orders/batch":
                body = #"{"order_id":"1","sales_id":"\#(mine ? "7" : "8")","status":"APPROVED"}"#
            case "/v1/pushes", "/v1/pushes/batch":
                if row.method == "POST" {
                    body = #"{"to":{"clients":["a"]},"message":\#(message)}"#
                }
            case "/v1/scheduled/{id}":
                if row.method == "PATCH" { body = #"{"deliver_in_s":60}"# }
            case "/v1/clients/{id}/device":
                if row.method == "PUT" {
                    body = #"{"kind":"apns","token":"0a","bundle":"com.example.app"}"#
                }
            case "/v1/clients/{id}/tags":
                if row.method == "PUT" { body = #"{"add":["t"]}"# }
            default: break
            }
            guard body != nil else { return }
            type =
                switch row.path {
                case "/v1/publish": nil
                case let path where path.hasSuffix("/batch"): "application/x-ndjson"
                default: "application/json"
                }
        }
    }

    /// The status of the answer and its body. A stream is not read to its end.
    private func ask(
        _ server: TestServer, _ row: Row, mine: Bool = true, _ token: String
    ) throws -> (status: Int, text: String) {
        let example = Example(row, mine: mine)
        let body = example.body.map { Array($0.utf8) }
        let connection = try server.connect()
        try connection.send(
            TestServer.head(
                row.method, example.target,
                headers: example.type.map { ["Content-Type: \($0)"] } ?? [], token: token,
                body: body))
        try connection.send(body ?? [])
        let head = try connection.readHead()
        if row.path == "/v1/events", head.status == 200 { return (200, "") }
        let isChunked = head["Transfer-Encoding"] != nil
        let answer =
            head.status == 204
            ? [] : isChunked ? try connection.readChunks() : try connection.readBody(of: head)
        return (head.status, String(decoding: answer, as: UTF8.self))
    }

    /// What the requests show, change and remove.
    private static func fill(_ state: inout StubBroker.State) {
        state.details["a"] = StubBroker.detail("a")
        state.devices["a"] = DeviceDetail(
            clientID: "a",
            device: Device(
                kind: .apns, token: [1], bundle: "b", environment: .sandbox, userName: nil,
                registeredAtMs: 2), wake: .none, waiting: 0)
        for (id, topic) in [("mine", "orders/1"), ("other", "private/1")] {
            state.scheduled[id] = ScheduledMessage(
                messageID: id, topic: topic, qos: 1, retain: false, payloadBytes: 3,
                deliverAtMs: 5, expiresInSeconds: 6)
            state.receipts[id] = MessageReceipt(
                messageID: id, topic: topic, publishedAtMs: 1, counts: MessageReceipt.Counts(),
                receivers: [])
            state.pushes[id] = PushRouteTests.status(id, topic: topic)
            state.retained[topic] = RetainedMessage(
                summary: RetainedSummary(topic: topic, qos: 1, payloadBytes: 1, expiresAtMs: nil),
                payload: [1])
        }
    }

    /// Runs the body with a maker of tokens with the scopes `publish` and `read` and some bounds.
    private func run(
        _ body: (TestServer, (_ name: Int, _ bounds: String) throws -> String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { folder in
            let checks = try TokenChecks(path: folder + "/tokens", logger: CapturedLog().logger)
            let changes = TestServer.Changes {
                $0.tokens = checks
                $0.orderTopicTemplate = "orders/{sales_id}/{order_id}/status"
            }
            try await TestServer.run(StubBroker(Self.fill), with: changes) { server in
                try await body(server) { name, bounds in
                    let json = #"{"name":"t\#(name)","scopes":["publish","read"],\#(bounds)}"#
                    return try server.post("/v1/tokens", json: json).json(TokenCreated.self).token
                }
            }
        }
    }

    // MARK: Topics

    @Test("a token that is bound to topics meets nothing of others, whatever the route")
    func topics() async throws {
        try await run { server, make in
            let token = try make(0, #""topics":["orders/1","orders/7/#"]"#)
            for row in Self.rows {
                let (status, text) = try ask(server, row, token)
                guard row.scope != .admin else {
                    #expect(status == 403 && text.contains("missing-scope"), "\(row)")
                    continue
                }
                switch row.topics {
                case .refused:
                    #expect(status == 403 && text.contains("bound-token"), "\(row)")
                case .untouched:
                    #expect(status == 200, "\(row)")
                    #expect(!text.contains("private/1"), "\(row)")
                case .checked:
                    #expect((200...299).contains(status), "\(row) \(text)")
                    #expect(!text.contains("urn:hermes:problem"), "\(row) \(text)")
                    let other = try ask(server, row, mine: false, token)
                    #expect(other.text.contains("topic-not-allowed"), "\(row) \(other.text)")
                case .filtered:
                    #expect((200...299).contains(status), "\(row) \(text)")
                    #expect(!text.contains("private/1"), "\(row)")
                    let other = try ask(server, row, mine: false, token)
                    #expect(!other.text.contains("private/1\""), "\(row) \(other.text)")
                    if row.path.hasSuffix("}") || row.path.hasSuffix("message") {
                        #expect(other.status == 404, "\(row)")
                    }
                }
                server.broker.change(Self.fill)
            }
            #expect(server.broker.publications.allSatisfy { $0.topic.starts(with: "orders/".utf8) })
            let pushed = server.broker.pushRequests.map(\.publication.topic)
            #expect(pushed.allSatisfy { $0.starts(with: "orders/".utf8) })
        }
    }

    // MARK: Rate

    @Test("a token's rate counts what the route declares, and nothing else")
    func rate() async throws {
        try await run { server, make in
            for (index, row) in Self.rows.enumerated() where row.scope != .admin {
                server.broker.change(Self.fill)
                let token = try make(index, #""rate":"1/h""#)
                let first = try ask(server, row, token)
                #expect(!first.text.contains("rate-exceeded"), "\(row) \(first.text)")
                let second = try ask(server, row, token)
                let isCounted =
                    switch row.rate {
                    case .messages, .requests: true
                    case .untouched: false
                    }
                #expect(second.text.contains("rate-exceeded") == isCounted, "\(row)")
                #expect((second.status == 429) == (isCounted && !row.path.hasSuffix("/batch")))
            }
        }
    }
}
