import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Pushes")
struct PushRouteTests {
    private static let message = #""message": {"topic": "t", "payload": "x"}"#
    private static let simple = #"{"to": {"clients": ["a"]}, \#(message)}"#

    static func status(
        _ pushID: String, topic: String = "orders/1", state: PushStatus.State = .sending
    ) -> PushStatus {
        PushStatus(
            pushID: pushID, topic: topic, qos: 1, state: state, createdAtMs: 1, deliverAtMs: 2,
            spreadSeconds: 3, matched: 9, reached: 4, online: 1, queued: 3)
    }

    @Test("all fields reach the data plane")
    func allFields() async throws {
        try await TestServer.run { server in
            let before = unixMilliseconds()
            let response = try server.post(
                "/v1/pushes",
                json: #"""
                    {"to": {"tags": {"any": ["b", "a", "b"], "all": ["ä"], "none": ["c"]}},
                     "message": {"topic": "a/ü", "payload_base64": "AP8=", "qos": 2,
                                 "message_id": "sale-1", "expires_in_s": 60, "receipts": true},
                     "deliver_in_s": 30, "spread_s": 86400, "dry_run": false}
                    """#)
            let after = unixMilliseconds()
            #expect(response.status == 202)
            let request = try #require(server.broker.pushRequests.first)
            let time = try #require(request.deliverAtMs)
            #expect((before + 30_000...after + 30_000).contains(time))
            #expect(
                try response.json(PushAccepted.self)
                    == PushAccepted(
                        pushID: "sale-1", durability: "none",
                        scheduled: ScheduledTime(deliverAtMs: time)))
            #expect(request.pushID == Array("sale-1".utf8))
            #expect(request.spreadMs == 86_400_000)
            #expect(request.expiresInMs == 60_000)
            #expect(
                request.target
                    == .tags(
                        TagExpression(
                            any: [Array("b".utf8), Array("a".utf8)], all: [Array("ä".utf8)],
                            none: [Array("c".utf8)])))
            let publication = request.publication
            #expect(publication.topic == Array("a/ü".utf8))
            #expect(publication.payload == [0, 255])
            #expect(publication.qos == .exactlyOnce)
            #expect(!publication.retain)
            #expect(publication.expiresAtMs == nil)
            #expect(publication.schedule == nil)
            #expect(publication.receiptID == request.pushID)
            #expect(publication.identity?.isExplicit == false)
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("a list names each client once, in its order; the rest has defaults")
    func clients() async throws {
        try await TestServer.run { server in
            let response = try server.post(
                "/v1/pushes", json: #"{"to": {"clients": ["b", "a", "b"]}, \#(Self.message)}"#)
            let accepted = try response.json(PushAccepted.self)
            let request = try #require(server.broker.pushRequests.first)
            #expect(request.target == .clients([Array("b".utf8), Array("a".utf8)]))
            #expect(request.pushID == Array(accepted.pushID.utf8))
            #expect(request.deliverAtMs == nil)
            #expect(request.spreadMs == 0)
            #expect(request.expiresInMs == 0)
            #expect(request.publication.qos == .atLeastOnce)
            #expect(request.publication.identity == nil)
            #expect(request.publication.receiptID == request.pushID)
        }
    }

    /// Bodies, and the field at fault of each.
    static let wrongBodies: [(String, String)] = [
        (#"{"to": {"clients": ["a"]}}"#, "message"), (#"{\#(message)}"#, "to"),
        (#"{"to": {}, \#(message)}"#, "to"),
        (#"{"to": {"all": true}, \#(message)}"#, "to.all"),
        (#"{"to": {"clients": ["a"], "tags": {"any": ["b"]}}, \#(message)}"#, "to"),
        (#"{"to": {"clients": []}, \#(message)}"#, "to.clients"),
        (#"{"to": {"clients": [""]}, \#(message)}"#, "to.clients"),
        (#"{"to": {"clients": ["a\u0000"]}, \#(message)}"#, "to.clients"),
        (#"{"to": {"clients": "a"}, \#(message)}"#, "to.clients"),
        (#"{"to": {"tags": {"none": ["a"]}}, \#(message)}"#, "to.tags.any"),
        (#"{"to": {"tags": {"any": ["a,b"]}}, \#(message)}"#, "to.tags.any"),
        (#"{"to": {"tags": {"any": ["b"], "not": ["a"]}}, \#(message)}"#, "to.tags.not"),
        (#"{"to": {"tags": ["b"]}, \#(message)}"#, "to.tags"),
        (#"{"to": {"clients": ["a"]}, "message": "x"}"#, "message"),
        (#"{"to": {"clients": ["a"]}, "message": {"payload": "x"}}"#, "message.topic"),
        (#"{"to": {"clients": ["a"]}, "message": {"topic": "t"}}"#, "message.payload"),
        (
            #"{"to": {"clients": ["a"]}, "message": {"topic": "t", "payload": "", "qos": 3}}"#,
            "message.qos"
        ),
        (
            #"{"to": {"clients": ["a"]}, "message": {"topic": "t", "retain": true}}"#,
            "message.retain"
        ),
        (#"{"to": {"clients": ["a"]}, \#(message), "spread_s": 86401}"#, "spread_s"),
        (#"{"to": {"clients": ["a"]}, \#(message), "spread_s": -1}"#, "spread_s"),
        (#"{"to": {"clients": ["a"]}, \#(message), "deliver_at": "soon"}"#, "deliver_at"),
        (#"{"to": {"clients": ["a"]}, \#(message), "dry_run": 1}"#, "dry_run"),
    ]

    @Test("a wrong field is refused by name", arguments: wrongBodies)
    func wrongField(json: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.post("/v1/pushes", json: json).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-field")
            #expect(problem.field == field)
            #expect(server.broker.pushRequests.isEmpty)
        }
    }

    @Test("10,000 clients and 64 tags are the most")
    func most() async throws {
        try await TestServer.run { server throws in
            func clients(_ count: Int) throws -> RawResponse {
                let list = (0..<count).map { "\"c\($0)\"" }.joined(separator: ",")
                return try server.post(
                    "/v1/pushes", json: #"{"to": {"clients": [\#(list)]}, \#(Self.message)}"#)
            }
            #expect(try clients(10_000).status == 202)
            #expect(try clients(10_001).problem().field == "to.clients")

            func tags(_ any: Int, _ none: Int) throws -> RawResponse {
                func list(_ count: Int) -> String {
                    (0..<count).map { "\"t\($0)\"" }.joined(separator: ",")
                }
                return try server.post(
                    "/v1/pushes",
                    json: #"""
                        {"to": {"tags": {"any": [\#(list(any))], "none": [\#(list(none))]}},
                         \#(Self.message)}
                        """#)
            }
            #expect(try tags(60, 4).status == 202)
            #expect(try tags(60, 5).problem().field == "to.tags.any")
        }
    }

    @Test("the topic and the size are checked like those of a message")
    func checks() async throws {
        try await TestServer.run(with: .init { $0.maximumBodyBytes = 200 }) { server in
            let topic = try server.post(
                "/v1/pushes",
                json: #"{"to": {"clients": ["a"]}, "message": {"topic": "a/#", "payload": ""}}"#
            ).problem()
            #expect(topic.type == "urn:hermes:problem:invalid-topic")
            #expect(topic.field == "message.topic")
            let body = String(repeating: " ", count: 201 - Self.simple.utf8.count) + Self.simple
            #expect(try server.post("/v1/pushes", json: body).problem().status == 413)
            #expect(try server.post("/v1/pushes", json: Self.simple).status == 202)
        }
    }

    @Test("a dry run only counts")
    func dryRun() async throws {
        try await TestServer.run { server in
            let response = try server.post(
                "/v1/pushes",
                json: #"{"to": {"clients": ["a"]}, \#(Self.message), "dry_run": true}"#)
            #expect(response.status == 200)
            #expect(
                try response.json(PushPreview.self)
                    == PushPreview(matched: 4, online: 1, offline: 2, withoutSession: 1))
            #expect(server.broker.previews == [.clients([[0x61]])])
            #expect(server.broker.pushRequests.isEmpty)
        }
    }

    @Test("a repeat has the same key and digest; whom, when and over which time are part of it")
    func identity() async throws {
        try await TestServer.run { server in
            func push(_ change: String = "", to: String = #"{"clients": ["a", "b"]}"#) throws {
                let response = try server.post(
                    "/v1/pushes",
                    json: #"{"to": \#(to), \#(Self.message), "idempotency_key": "k"\#(change)}"#)
                #expect(response.status == 202)
            }
            try push()
            try push()
            try push(#", "spread_s": 1"#)
            try push(#", "deliver_in_s": 1"#)
            try push(to: #"{"clients": ["b", "a"]}"#)
            try push(to: #"{"clients": ["ab"]}"#)
            try push(to: #"{"tags": {"any": ["a", "b"]}}"#)
            try push(to: #"{"tags": {"any": ["a"], "all": ["b"]}}"#)
            try push(to: #"{"tags": {"all": ["a", "b"]}}"#)
            let identities = server.broker.pushRequests.compactMap(\.publication.identity)
            #expect(identities.count == 9)
            #expect(Set(identities.map(\.key)).count == 1)
            #expect(identities[0].digest == identities[1].digest)
            #expect(Set(identities.map(\.digest)).count == 7)
            #expect(identities[0].digest == identities[4].digest)
            #expect(identities.allSatisfy { $0.isExplicit })
        }
    }

    @Test("a repeat gets the identifier of the first push")
    func duplicate() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "POST", "/v1/pushes",
                headers: ["Content-Type: application/json", "Idempotency-Key: k"],
                body: Array(Self.simple.utf8))
            #expect(try !response.json(PushAccepted.self).duplicate)
            server.broker.change { $0.pushOutcome = .repeated(PublishCounts(), messageID: 0xAB) }
            let again = try server.request(
                "POST", "/v1/pushes",
                headers: ["Content-Type: application/json", "Idempotency-Key: k"],
                body: Array(Self.simple.utf8))
            #expect(
                try again.json(PushAccepted.self)
                    == PushAccepted(
                        pushID: "00000000-0000-0000-0000-0000000000ab", durability: "none",
                        duplicate: true))
        }
    }

    @Test("without receipts in the broker, only a push that insists on them is refused")
    func receiptsOff() async throws {
        try await TestServer.run(StubBroker { $0.hasReceiptsOff = true }) { server in
            func push(_ receipts: String) throws -> RawResponse {
                try server.post(
                    "/v1/pushes",
                    json: #"""
                        {"to": {"clients": ["a"]},
                         "message": {"topic": "t", "payload": "x"\#(receipts)}}
                        """#)
            }
            #expect(try push("").status == 202)
            let isWithout = server.broker.pushRequests.map(\.publication.receiptID.isEmpty)
            #expect(isWithout == [false, true])
            #expect(try push(#", "receipts": false"#).status == 202)
            #expect(server.broker.pushRequests.count == 3)
            let problem = try push(#", "receipts": true"#).problem()
            #expect(problem.type == "urn:hermes:problem:receipts-off")
        }
    }

    @Test(
        "what the data plane does not take is a problem",
        arguments: [
            (.alreadyScheduled, 409, "push-exists"),
            (.tooManyScheduled, 507, "too-many-pushes"),
            (.keyReused, 422, "idempotency-key-reused"),
            (.keysAreOff, 400, "idempotency-keys-off"),
            (.refused(.storeRefuses), 503, "store-refuses"),
        ] as [(PublishOutcome, Int, String)])
    func refused(outcome: PublishOutcome, status: Int, kind: String) async throws {
        try await TestServer.run(StubBroker { $0.pushOutcome = outcome }) { server in
            let problem = try server.post("/v1/pushes", json: Self.simple).problem()
            #expect(problem.status == status)
            #expect(problem.type == "urn:hermes:problem:\(kind)")
        }
    }

    @Test("pushes are listed, shown and cancelled")
    func lifecycle() async throws {
        let broker = StubBroker { $0.pushes = ["a": Self.status("a"), "b": Self.status("b")] }
        try await TestServer.run(broker) { server in
            let page: PushPage = try server.request("GET", "/v1/pushes").json()
            #expect(page.pushes.map(\.pushID) == ["a", "b"])
            let shown = try server.request("GET", "/v1/pushes/a")
            #expect(try shown.json(PushStatus.self) == Self.status("a"))
            let cancelled: PushStatus = try server.request("DELETE", "/v1/pushes/a").json()
            #expect(cancelled == Self.status("a", state: .cancelled))
            for method in ["GET", "DELETE"] {
                let problem = try server.request(method, "/v1/pushes/none").problem()
                #expect(problem.type == "urn:hermes:problem:push-not-found")
            }
        }
    }

    @Test("a bound token pushes to its topics, and sees no others")
    func bound() async throws {
        let broker = StubBroker {
            $0.pushes = ["mine": Self.status("mine"), "other": Self.status("other", topic: "t")]
        }
        try await withBoundToken(broker) { server, token in
            func push(_ topic: String, _ rest: String = "") throws -> RawResponse {
                try server.request(
                    "POST", "/v1/pushes", headers: ["Content-Type: application/json"],
                    token: token,
                    body: Array(
                        #"""
                        {"to": {"clients": ["a"]},
                         "message": {"topic": "\#(topic)", "payload": "x"}\#(rest)}
                        """#.utf8))
            }
            #expect(try push("orders/1").status == 202)
            #expect(try push("t").problem().type == "urn:hermes:problem:topic-not-allowed")
            let dry = try push("t", #", "dry_run": true"#)
            #expect(try dry.problem().type == "urn:hermes:problem:topic-not-allowed")

            let page: PushPage = try server.request("GET", "/v1/pushes", token: token).json()
            #expect(page.pushes.map(\.pushID) == ["mine"])
            #expect(try server.request("GET", "/v1/pushes/mine", token: token).status == 200)
            for method in ["GET", "DELETE"] {
                let problem = try server.request(method, "/v1/pushes/other", token: token).problem()
                #expect(problem.type == "urn:hermes:problem:push-not-found")
            }
            #expect(try server.request("GET", "/v1/pushes/other").status == 200)
        }
    }
}
