import BrokerAPI
import FoundationEssentials
import Testing

@testable import AdminAPI

@Suite("POST /v1/messages")
struct MessageRouteTests {
    @Test("all fields reach the data plane")
    func allFields() async throws {
        try await TestServer.run { server in
            let before = unixMilliseconds()
            let response = try server.post(
                "/v1/messages",
                json: #"""
                    {"topic": "a/ü", "payload": "h\u00e9llo\n", "qos": 0, "retain": true,
                     "message_id": "order-1", "expires_in_s": 60}
                    """#)
            #expect(response.status == 200)
            #expect(try response.json(PublishResult.self).messageID == "order-1")
            let publication = try #require(server.broker.publications.first)
            #expect(publication.topic == Array("a/ü".utf8))
            #expect(publication.payload == Array("héllo\n".utf8))
            #expect(publication.qos == .atMostOnce)
            #expect(publication.retain)
            #expect(publication.sequence == nil)
            #expect(publication.messageID == Array("order-1".utf8))
            #expect(publication.receiptID.isEmpty)
            let expiry = try #require(publication.expiresAtMs)
            #expect((before + 60_000...unixMilliseconds() + 60_000).contains(expiry))
        }
    }

    @Test("a base64 payload is decoded, null is as good as absent")
    func base64() async throws {
        try await TestServer.run { server in
            let response = try server.post(
                "/v1/messages",
                json: #"{"topic":"t","payload":null,"payload_base64":"AP+A","qos":null}"#)
            #expect(response.status == 200)
            var publication = Publication(
                topic: [0x74], payload: [0, 255, 128], qos: .atLeastOnce)
            publication.messageID = Array(try response.json(PublishResult.self).messageID.utf8)
            publication.owner = Caller.admin.owner
            #expect(server.broker.publications == [publication])
        }
    }

    @Test("messages encoded by hermesctl are understood")
    func modelIsUnderstood() async throws {
        try await TestServer.run { server in
            let request = MessageRequest(
                topic: "t", payloadBase64: "AQ==", qos: 2, retain: true, messageID: "m",
                expiresInSeconds: 1)
            let json = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
            #expect(try server.post("/v1/messages", json: json).status == 200)
            #expect(server.broker.publications.first?.payload == [1])
        }
    }

    @Test(
        "a wrong field is refused by name",
        arguments: [
            (#"{"payload":"x"}"#, "topic"),
            (#"{"topic":7,"payload":"x"}"#, "topic"),
            (#"{"topic":"t"}"#, "payload"),
            (#"{"topic":"t","payload":{"a":1}}"#, "payload"),
            (#"{"topic":"t","payload":"x","payload_base64":"eA=="}"#, "payload"),
            (#"{"topic":"t","payload_base64":"e?=="}"#, "payload_base64"),
            (#"{"topic":"t","payload":"x","qos":3}"#, "qos"),
            (#"{"topic":"t","payload":"x","qos":1.5}"#, "qos"),
            (#"{"topic":"t","payload":"x","qos":"1"}"#, "qos"),
            (#"{"topic":"t","payload":"x","retain":1}"#, "retain"),
            (#"{"topic":"t","payload":"x","message_id":""}"#, "message_id"),
            (#"{"topic":"t","payload":"x","message_id":"a b"}"#, "message_id"),
            (#"{"topic":"t","payload":"x","expires_in_s":0}"#, "expires_in_s"),
            (#"{"topic":"t","payload":"x","expires_in_s":4294967296}"#, "expires_in_s"),
            (#"{"topic":"t","payload":"x","collapse_key":""}"#, "collapse_key"),
            (#"{"topic":"t","payload":"x","collapse_key":"k","deliver_in_s":9}"#, "collapse_key"),
            (#"{"topic":"t","payload":"x","Topic":"u"}"#, "Topic"),
            (#"["topic"]"#, nil),
        ] as [(String, String?)])
    func wrongField(json: String, field: String?) async throws {
        try await TestServer.run { server in
            let problem = try server.post("/v1/messages", json: json).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-field")
            #expect(problem.status == 400)
            #expect(problem.field == field)
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("a topic in the body is checked like one in the query")
    func wrongTopic() async throws {
        try await TestServer.run { server in
            let problem = try server.post(
                "/v1/messages", json: #"{"topic":"a/#","payload":""}"#
            ).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-topic")
            #expect(problem.field == "topic")
        }
    }

    @Test("broken JSON is answered with its line and column")
    func brokenJSON() async throws {
        try await TestServer.run { server in
            let problem = try server.post("/v1/messages", json: "{\n  \"topic\" \"t\"\n}").problem()
            #expect(problem.type == "urn:hermes:problem:invalid-json")
            #expect(problem.status == 400)
            #expect(problem.detail.contains("line 2, column 11: expected `:`"))
        }
    }

    @Test(
        "another or no media type, and a compressed body, are 415",
        arguments: [
            ([], "Content-Type"), (["Content-Type: text/plain"], "Content-Type"),
            (["Content-Type: application/jsonx"], "Content-Type"),
            (["Content-Type: application/json", "Content-Encoding: gzip"], "Content-Encoding"),
        ])
    func mediaType(headers: [String], field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request(
                "POST", "/v1/messages", headers: headers, body: Array("{}".utf8)
            ).problem()
            #expect(problem.status == 415)
            #expect(problem.type == "urn:hermes:problem:unsupported-media-type")
            #expect(problem.field == field)
        }
    }

    @Test("parameters of the media type do not matter")
    func mediaTypeParameters() async throws {
        try await TestServer.run { server in
            let response = try server.request(
                "POST", "/v1/messages", headers: ["Content-Type: Application/JSON; charset=utf-8"],
                body: Array(#"{"topic":"t","payload":""}"#.utf8))
            #expect(response.status == 200)
        }
    }
}
