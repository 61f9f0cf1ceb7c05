import BanFiles
import BrokerAPI
import HermesMessages
import Logging
import PlainText
import RequestText
import Testing

@testable import AdminAPI

@Suite("The OpenAPI document")
struct OpenAPITests {
    @Test("it describes exactly the routes that exist")
    func routes() throws {
        let table = try TestServer.routeTable()
        var described: Set<String> = []
        for operation in try document().operations {
            let (method, path) = (operation.method, operation.path)
            described.insert("\(method) \(path)")
            let route = try #require(
                table.routes.first { $0.path == path && $0.method.rawValue == method },
                "\(method) \(path) is described and does not exist")
            #expect(Set(operation.names(in: "query")) == Set(route.query), "\(path)")
            let places = path.split(separator: "/").filter { $0.hasPrefix("{") }
            #expect(
                Set(operation.names(in: "path"))
                    == Set(places.map { $0.dropFirst().dropLast() }.map(String.init)))
            #expect((operation.content["requestBody"] != nil) == (route.body != .none), "\(path)")
            let scopes: [JSONValue] =
                switch route.access {
                case .open: []
                case .scope(let scope, _, _):
                    [
                        .object([
                            JSONMember(
                                name: "token", value: .array([.string(ForeignText(scope.rawValue))])
                            )
                        ])
                    ]
                }
            #expect(operation.content["security"] == .array(scopes), "\(path)")
            if case .scope(_, let topics, let rate) = route.access {
                #expect(operation.content["x-hermes-topics"]?.text == topics.rawValue, "\(path)")
                #expect(operation.content["x-hermes-rate"]?.text == rate.rawValue, "\(path)")
            }
            let refusals = ["401", "403", "429"].filter {
                operation.content["responses"]?[$0] != nil
            }
            #expect(refusals.count == (route.access == .open ? 0 : 3), "\(path)")
        }
        // The operator's page is no part of the API.
        let existing = table.routes.filter { !$0.path.hasPrefix("/ui") }
        #expect(described == Set(existing.map { "\($0.method.rawValue) \($0.path)" }))
    }

    @Test("it names this version and is served without a token")
    func served() async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/v1/openapi.json", token: nil)
            #expect(response.status == 200)
            #expect(response["Content-Type"] == "application/json")
            let document = try OpenAPIModel(response.text)
            #expect(document.root["openapi"]?.text == "3.1.0")
            #expect(document.root["info"]?["version"]?.text == "1.2.3")
        }
    }

    @Test("answers of the routes fit their schemas, member by member")
    func answers() async throws {
        let document = try document()
        let tokens = try TokenChecks(path: "/nonexistent/tokens", logger: Logger(label: "test"))
        let bans = try BanBook(dataDirectory: "/nonexistent")
        let changes = TestServer.Changes {
            $0.tokens = tokens
            $0.bans = bans
            $0.users = UserFile(path: "/nonexistent/users") {}
            $0.listeners = [
                ListenerModel(
                    address: "127.0.0.1:8083", tls: false,
                    webSocket: .init(path: "/mqtt", origins: ["https://app.example.org"]))
            ]
        }
        try await TestServer.run(Self.broker(), with: changes) { server in
            for operation in document.operations {
                guard operation.method == "GET" || operation.path == "/v1/publish",
                    let schema = operation.answer(200)
                else { continue }
                let target = Self.target(operation.path)
                let needsTopic = ["/v1/publish", "/v1/receivers", "/v1/retained/message"].contains(
                    operation.path)
                let response = try server.request(
                    operation.method, needsTopic ? target + "?topic=a" : target,
                    body: operation.method == "POST" ? [1] : nil)
                #expect(response.status == 200, "\(target)")
                let answer = try JSONParser.parse(response.body)
                #expect(document.misfits(answer, schema, at: target) == [])
            }
            let problem = try JSONParser.parse(server.request("GET", "/v1/clients/unknown").body)
            let schema = try document.schema("Problem")
            #expect(document.misfits(problem, schema, at: "problem") == [])
        }
    }

    @Test("limits of query parameters are the limits of the routes")
    func queryLimits() async throws {
        var checked = 0
        let operations = try document().operations.filter { $0.method == "GET" }
        let bans = try BanBook(dataDirectory: "/nonexistent")
        let changes = TestServer.Changes {
            $0.bans = bans
            $0.users = UserFile(path: "/nonexistent/users") {}
        }
        try await TestServer.run(Self.broker(), with: changes) { server in
            // Lines of a trace go on; its own tests hold its limits.
            for operation in operations where operation.path != "/v1/trace" {
                let base = operation.path == "/v1/receivers" ? "topic=a&" : ""
                for parameter in operation.parameters(in: "query") {
                    guard let name = parameter["name"]?.text,
                        let least = parameter["schema"]?["minimum"]?.integer
                    else { continue }
                    var values = [least: 200, least - 1: 400]
                    if let most = parameter["schema"]?["maximum"]?.integer {
                        values[most] = 200
                        values[most + 1] = 400
                    }
                    for (value, status) in values {
                        let target = "\(Self.target(operation.path))?\(base)\(name)=\(value)"
                        let response = try server.request("GET", target)
                        #expect(response.status == status, "\(target)")
                    }
                    checked += 1
                }
            }
        }
        #expect(checked == 19)
    }

    @Test("names are in snake_case, and those of times end in _at_ms")
    func spelling() throws {
        // A clock that nobody sets, and lengths of time.
        let noTimes: Set = ["clock_ms", "delay_ms", "durability_interval_ms"]
        let schemas = try #require(try document().root["components"]?["schemas"]?.members)
        for name in schemas.flatMap({ Self.properties($0.value) }) {
            let isSnake = name.allSatisfy { $0.isLowercase || $0.isNumber || $0 == "_" }
            #expect(isSnake, "\(name)")
            if name.hasSuffix("_ms"), !noTimes.contains(name) {
                #expect(name == "at_ms" || name.hasSuffix("_at_ms"), "\(name)")
            }
        }
    }

    /// The names of all properties in a schema, and in those inside it.
    private static func properties(_ schema: JSONValue) -> [String] {
        let own = schema["properties"]?.members ?? []
        let others = (schema.members ?? []).filter { $0.name != "properties" }
        let inside = own.map(\.value) + others.map(\.value) + (schema.elements ?? [])
        return own.map(\.name.string) + inside.flatMap { properties($0) }
    }

    @Test("fields of requests, names and sizes are those of the code")
    func constants() async throws {
        let document = try document()
        let order = try document.schema("OrderStatusUpdate")
        let statuses = order["properties"]?["status"]?["anyOf"]?.elements ?? []
        #expect(
            statuses.compactMap { $0["enum"]?.elements?.compactMap(\.text) } == [
                OrderStatus.allCases.map(\.shortName), OrderStatus.allCases.map(\.fullName),
            ])
        #expect(statuses.last?["minimum"]?.integer == 0)
        #expect(statuses.last?["maximum"]?.integer == OrderStatus.allCases.count - 1)

        let name = try document.schema("CallersMessageID")
        #expect(name["pattern"]?.text == "^[!-~]{1,\(MessageID.maximumLength)}$")
        let expiry = try document.schema("ExpirySeconds")
        #expect(expiry["minimum"]?.integer == Int(Publisher.expirySeconds.lowerBound))
        #expect(expiry["maximum"]?.integer == Int(Publisher.expirySeconds.upperBound))
        let publish = try #require(
            document.operations.first { $0.path == "/v1/publish" && $0.method == "POST" })
        for (parameter, schema) in [("message_id", name), ("expires_in_s", expiry)] {
            let found = publish.parameters(in: "query").first { $0["name"]?.text == parameter }
            for rule in ["pattern", "minimum", "maximum"] {
                #expect(found?["schema"]?[rule]?.text == schema[rule]?.text)
                #expect(found?["schema"]?[rule]?.integer == schema[rule]?.integer)
            }
        }
        for (schema, known) in [
            ("UserOrder", UserOrder.fields), ("UserLine", UserOrder.fieldsOfLine),
        ] {
            let documented = try document.schema(schema)["properties"]?.members ?? []
            #expect(Set(documented.map(\.name.string)) == Set(known.names), "\(schema)")
        }
        let reason = try document.schema("BanRequest")["properties"]?["reason"]
        #expect(reason?["maxLength"]?.integer == BanFile.maximumReasonBytes)
        #expect(try document.schema("Tag")["maxLength"]?.integer == TagText.maximumByteCount)
        let list = try document.schema("TagList")
        #expect(list["maxItems"]?.integer == TagRoutes.mostInList)
        let target = try document.schema("PushTarget")["properties"]?["clients"]
        #expect(target?["maxItems"]?.integer == PushTarget.mostClients)
        let spread = try document.schema("PushRequest")["properties"]?["spread_s"]
        #expect(spread?["maximum"]?.integer == Int(PushOrder.mostSpreadSeconds))
        let clients = try #require(
            document.operations.first { $0.path == "/v1/clients" && $0.method == "GET" })
        let cursor = clients.parameters(in: "query").first { $0["name"]?.text == "cursor" }
        #expect(cursor?["schema"]?["maxLength"]?.integer == ListCursor.maximumTextBytes)

        try await TestServer.run { server in
            for (target, schema, known) in [
                ("/v1/messages", "MessageRequest", Route.messageFields),
                ("/v1/orders/1/status", "OrderStatusUpdate", OrderStatusPublisher.fields),
                ("/v1/tokens", "TokenRequest", TokenRoutes.fields),
                ("/v1/pushes", "PushRequest", PushOrder.fields),
                ("/v1/bans", "BanRequest", BanRoutes.fields),
            ] {
                let documented = try document.schema(schema)["properties"]?.members ?? []
                #expect(Set(documented.map(\.name.string)) == Set(known.names), "\(schema)")
                for field in documented {
                    let response = try server.post(target, json: #"{"\#(field.name)": null}"#)
                    // Rejected for a missing field, and not for an unknown one.
                    #expect(try !response.problem().detail.contains("known"), "\(field.name)")
                }
            }
        }
    }

    private func document() throws -> OpenAPIModel {
        try OpenAPIModel(OpenAPIDocument.text(version: "1"))
    }

    private static func target(_ path: String) -> String {
        path.replacing("{id}", with: "a").replacing("{tag}", with: "a")
    }

    /// A broker that knows the client "a".
    private static func broker() -> StubBroker {
        StubBroker { state in
            state.page = ClientPage(clients: [StubBroker.summary("a")], next: "61")
            state.details["a"] = StubBroker.detail("a")
            state.subscriptions = [
                ListedSubscription(
                    clientID: "a", userName: "u", connected: true, filter: "f", qos: 1)
            ]
            state.retained["a"] = RetainedMessage(
                summary: RetainedSummary(topic: "a", qos: 1, payloadBytes: 1, expiresAtMs: 9),
                payload: [1])
            state.details["a"]?.heartbeatSeconds = 240
            state.details["a"]?.report = StubBroker.report("a")
            state.events["a"] = [
                ClientEvent(
                    kind: .lostMessages, firstMs: 1, lastMs: 2, count: 3, reason: "queue_full",
                    address: "127.0.0.1:1", userName: "u", topic: "t")
            ]
            state.arrivalPages[0] = ArrivalPage(
                total: StubBroker.arrivalTotal, clients: [StubBroker.report("a")], next: "1")
            state.queues["a"] = QueuePage(
                clientID: "a",
                messages: [
                    QueuedMessage(
                        position: 7, state: .inFlight, topic: "t", qos: 1, retain: true,
                        payloadBytes: 3, expiresAtMs: 9, messageID: "m")
                ],
                next: "8")
            state.scheduled["a"] = ScheduledMessage(
                messageID: "a", topic: "t", qos: 1, retain: false, payloadBytes: 3,
                deliverAtMs: 5, expiresInSeconds: 6)
            var counts = MessageReceipt.Counts()
            counts.receivers = 1
            state.tags["a"] = ["t"]
            state.devices["a"] = DeviceDetail(
                clientID: "a",
                device: Device(
                    kind: .apns, token: [1], bundle: "b", environment: .sandbox, userName: "u",
                    registeredAtMs: 2), wake: .waiting, waiting: 3, lastOutcome: "later",
                lastReason: "TooManyRequests", lastAnsweredAtMs: 4)
            state.tagPages[0] = TagPage(tags: [TagSummary(tag: "t", clients: 1)])
            state.taggedClientPages[0] = TaggedClientPage(clients: ["a"])
            state.pushes["a"] = PushStatus(
                pushID: "a", topic: "t", qos: 1, state: .done, createdAtMs: 1, deliverAtMs: 2,
                spreadSeconds: 3, endedAtMs: 4, matched: 5, reached: 5, online: 1, queued: 1,
                dropped: 1,
                withoutSession: 1, denied: 1, receipts: counts)
            state.receipts["a"] = MessageReceipt(
                messageID: "a", topic: "t", publishedAtMs: 1, counts: counts,
                receivers: [
                    MessageReceipt.Receiver(
                        clientID: "c", state: .dropped, reason: "queue_full", atMs: 2)
                ])
        }
    }
}
