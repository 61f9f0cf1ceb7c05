import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Readiness, queues, losses and backups")
struct StoreRouteTests {
    @Test("a broker that acknowledges durably is ready, without a token and without the data plane")
    func ready() async throws {
        try await TestServer.run(StubBroker { $0.unavailable = .overloaded }) { server in
            let response = try server.request("GET", "/readyz", token: nil)
            #expect(response.status == 200)
            #expect(
                try response.json(ReadinessModel.self)
                    == ReadinessModel(status: "ready", durability: "none"))
        }
    }

    @Test("one that is not says why")
    func notReady() async throws {
        let broker = StubBroker { $0.notReadyReason = "The disk is nearly full." }
        try await TestServer.run(broker) { server in
            let problem = try server.request("GET", "/readyz", token: nil).problem()
            #expect(problem.status == 503)
            #expect(problem.type == "urn:hermes:problem:not-ready")
            #expect(problem.detail == "The disk is nearly full.")
            // The process is alive nevertheless.
            #expect(try server.request("GET", "/healthz", token: nil).status == 200)
            broker.change { $0.notReadyReason = nil }
            #expect(try server.request("GET", "/readyz", token: nil).status == 200)
        }
    }

    @Test("a queue is asked for by page, and shown as it is")
    func queue() async throws {
        let page = QueuePage(
            clientID: "a/b",
            messages: [
                QueuedMessage(
                    position: 7, state: .inFlight, topic: "t", qos: 1, retain: true,
                    payloadBytes: 3, expiresAtMs: 9, messageID: "m-7"),
                QueuedMessage(
                    position: 8, state: .released, topic: nil, qos: 2, retain: false,
                    payloadBytes: 0),
            ], next: "9")
        try await TestServer.run(StubBroker { $0.queues["a/b"] = page }) { server in
            let response = try server.request("GET", "/v1/clients/a%2Fb/queue?limit=2&cursor=7")
            #expect(try response.json(QueuePage.self) == page)
            #expect(response.text.contains("\"state\":\"in_flight\""))
            #expect(response.text.split(separator: "\"message_id\":\"m-7\"").count == 2)
            #expect(try server.request("GET", "/v1/clients/a%2Fb/queue").status == 200)
            #expect(
                server.broker.queueQueries == [
                    QueueQuery(clientID: "a/b", limit: 2, from: 7), QueueQuery(clientID: "a/b"),
                ])
        }
    }

    @Test(
        "a wrong page is refused by name",
        arguments: [
            ("limit=0", "limit"), ("limit=1001", "limit"), ("cursor=-1", "cursor"),
            ("cursor=x", "cursor"), ("cursor=9223372036854775808", "cursor"), ("from=1", "from"),
        ])
    func wrongPage(query: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request("GET", "/v1/clients/a/queue?" + query).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-query")
            #expect(problem.field == field)
        }
    }

    @Test("dropping a queue reports the number of messages; an unknown client gets 404")
    func drop() async throws {
        let page = QueuePage(
            clientID: "a",
            messages: [
                QueuedMessage(
                    position: 0, state: .waiting, topic: "t", qos: 1, retain: false,
                    payloadBytes: 1)
            ])
        try await TestServer.run(StubBroker { $0.queues["a"] = page }) { server in
            let response = try server.request("DELETE", "/v1/clients/a/queue")
            #expect(
                try response.json(QueueDropResult.self)
                    == QueueDropResult(clientID: "a", dropped: 1))
            for method in ["GET", "DELETE"] {
                let problem = try server.request(method, "/v1/clients/a/queue").problem()
                #expect(problem.type == "urn:hermes:problem:client-not-found")
            }
        }
    }

    @Test("a queue that the store cannot read is the broker's fault, in its words")
    func unreadable() async throws {
        try await TestServer.run(StubBroker { $0.unavailable = .unreadable("it is damaged") }) {
            server in
            let problem = try server.request("GET", "/v1/clients/a/queue").problem()
            #expect(problem.status == 500)
            #expect(problem.detail == "it is damaged")
        }
    }

    @Test("accepting a loss reports it; the second time there is none")
    func acceptLoss() async throws {
        try await TestServer.run(StubBroker { $0.damage = ["/data/journal/damaged-1.segment"] }) {
            server in
            let path = "/v1/store/accept-loss"
            let first = try server.request("POST", path).json(AcceptLossResult.self)
            #expect(first.accepted == ["/data/journal/damaged-1.segment"])
            let second = try server.request("POST", path).json(AcceptLossResult.self)
            #expect(second.accepted == [])
            #expect(try server.request("GET", path).problem().status == 405)
        }
    }

    @Test("a backup goes to the named folder")
    func backup() async throws {
        try await TestServer.run { server in
            let response = try server.request("POST", "/v1/backup?directory=%2Fb%2Fone%20two")
            #expect(
                try response.json(BackupResult.self) == BackupResult(directory: "/b/one two"))
            #expect(server.broker.backups == ["/b/one two"])
        }
    }

    @Test(
        "a folder without a whole path is refused", arguments: ["", "?directory=b", "?directory="])
    func relativeFolder(query: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request("POST", "/v1/backup" + query).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-query")
            #expect(problem.field == "directory")
            #expect(server.broker.backups.isEmpty)
        }
    }

    @Test(
        "a backup that failed says why",
        arguments: [
            (BackupFailure.unusableFolder("it is not empty"), 409, "backup-folder"),
            (.outOfSpace("there is no room"), 507, "disk-full"),
            (.nothingStored, 500, "backup-failed"), (.failed("it broke"), 500, "backup-failed"),
        ])
    func failedBackup(failure: BackupFailure, status: Int, type: String) async throws {
        try await TestServer.run(StubBroker { $0.backupFailure = failure }) { server in
            let problem = try server.request("POST", "/v1/backup?directory=/b").problem()
            #expect(problem.status == status)
            #expect(problem.type == "urn:hermes:problem:" + type)
        }
    }

    @Test(
        "all of it but readiness needs the token",
        arguments: [
            ("GET", "/v1/clients/a/queue"), ("DELETE", "/v1/clients/a/queue"),
            ("POST", "/v1/store/accept-loss"), ("POST", "/v1/backup?directory=/b"),
        ])
    func token(method: String, path: String) async throws {
        try await TestServer.run { server in
            let response = try server.request(method, path, token: nil)
            #expect(response.status == 401)
            #expect(server.broker.backups.isEmpty)
        }
    }
}
