import BrokerAPI
import CHermesProtos
import Testing

@testable import AdminAPI

@Suite("POST /v1/orders/{order_id}/status")
struct OrderStatusRouteTests {
    @Test("becomes an Envelope with an OrderStatusUpdate, to be stamped with its sequence")
    func envelope() async throws {
        try await TestServer.run { server in
            let before = unixMilliseconds()
            let response = try server.post(
                "/v1/orders/A-17/status",
                json: #"""
                    {"salesId": "s 9", "status": "APPROVED", "reason": "fine",
                     "updatedAtMs": "1763700000123", "details": {"limit": "100", "": "x"}}
                    """#)
            #expect(response.status == 200)
            let publication = try #require(server.broker.publications.first)
            #expect(publication.topic == Array("orders/s 9/A-17/status".utf8))
            #expect(publication.qos == .atLeastOnce)
            #expect(!publication.retain)
            #expect(
                publication.sequence
                    == SequenceStamp(channel: Array("orders/s 9".utf8), tag: 14 << 3))

            let message = try #require(
                hermes__v1__envelope__unpack(nil, publication.payload.count, publication.payload))
            defer { hermes__v1__envelope__free_unpacked(message, nil) }
            let envelope = message.pointee
            let messageID = try response.json(PublishResult.self).messageID
            #expect(String(cString: envelope.message_id) == messageID)
            #expect(publication.messageID == Array(messageID.utf8))
            #expect(String(cString: envelope.topic) == "orders/s 9/A-17/status")
            #expect(String(cString: envelope.channel) == "orders/s 9")
            #expect((before...unixMilliseconds()).contains(envelope.published_at_ms))
            #expect(
                String(cString: envelope.content_type)
                    == "application/protobuf; proto=hermes.v1.OrderStatusUpdate")
            #expect(envelope.sequence == 0)

            let update = try #require(
                hermes__v1__order_status_update__unpack(
                    nil, envelope.payload.len, envelope.payload.data))
            defer { hermes__v1__order_status_update__free_unpacked(update, nil) }
            #expect(String(cString: update.pointee.order_id) == "A-17")
            #expect(String(cString: update.pointee.sales_id) == "s 9")
            #expect(update.pointee.status.rawValue == 4)
            #expect(String(cString: update.pointee.reason) == "fine")
            #expect(update.pointee.updated_at_ms == 1_763_700_000_123)
            #expect(update.pointee.n_details == 2)
        }
    }

    @Test(
        "proto3 JSON spellings are taken",
        arguments: [
            #"{"sales_id":"s","status":"ORDER_STATUS_FUNDED"}"#,
            #"{"sales_id":"s","status":7,"order_id":"o","updated_at_ms":5}"#,
            #"{"salesId":"s","status":7.0,"updatedAtMs":"1e3"}"#,
            #"{"sales_id":"s","status":"FUNDED","reason":null,"details":null,"updated_at_ms":null}"#,
        ])
    func spellings(json: String) async throws {
        try await TestServer.run { server in
            let response = try server.post("/v1/orders/o/status", json: json)
            #expect(response.status == 200)
            #expect(server.broker.publications.count == 1)
        }
    }

    @Test(
        "message_id and expires_in_s belong to the message, and the Envelope says both",
        arguments: [
            #""message_id":"o-1","expires_in_s":60"#, #""messageId":"o-1","expiresInS":60"#,
        ])
    func nameAndExpiry(fields: String) async throws {
        try await TestServer.run { server in
            let before = unixMilliseconds()
            let response = try server.post(
                "/v1/orders/o/status", json: #"{"sales_id":"s","status":1,"# + fields + "}")
            #expect(try response.json(PublishResult.self).messageID == "o-1")
            let publication = try #require(server.broker.publications.first)
            let message = try #require(
                hermes__v1__envelope__unpack(nil, publication.payload.count, publication.payload))
            defer { hermes__v1__envelope__free_unpacked(message, nil) }
            #expect(String(cString: message.pointee.message_id) == "o-1")
            let expiry = try #require(publication.expiresAtMs)
            #expect(message.pointee.expires_at_ms == expiry)
            #expect((before + 60_000...unixMilliseconds() + 60_000).contains(expiry))
        }
    }

    @Test(
        "a wrong field is refused by name",
        arguments: [
            ("o", #"{"status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"","status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"a/b","status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"+","status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"a#","status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"a\u0000","status":"SIGNED"}"#, "sales_id"),
            ("a%2Fb", #"{"sales_id":"s","status":"SIGNED"}"#, "order_id"),
            ("%2B", #"{"sales_id":"s","status":"SIGNED"}"#, "order_id"),
            ("%00", #"{"sales_id":"s","status":"SIGNED"}"#, "order_id"),
            ("%FF", #"{"sales_id":"s","status":"SIGNED"}"#, "order_id"),
            ("o", #"{"sales_id":"s","status":"SIGNED","order_id":"p"}"#, "order_id"),
            ("o", #"{"sales_id":"s","salesId":"s","status":"SIGNED"}"#, "sales_id"),
            ("o", #"{"sales_id":"s"}"#, "status"),
            ("o", #"{"sales_id":"s","status":"PAID"}"#, "status"),
            ("o", #"{"sales_id":"s","status":9}"#, "status"),
            ("o", #"{"sales_id":"s","status":true}"#, "status"),
            ("o", #"{"sales_id":"s","status":1,"updated_at_ms":"soon"}"#, "updated_at_ms"),
            ("o", #"{"sales_id":"s","status":1,"updated_at_ms":-1}"#, "updated_at_ms"),
            ("o", #"{"sales_id":"s","status":1,"updated_at_ms":1.5}"#, "updated_at_ms"),
            ("o", #"{"sales_id":"s","status":1,"details":[]}"#, "details"),
            ("o", #"{"sales_id":"s","status":1,"details":{"a":1}}"#, "details.a"),
            ("o", #"{"sales_id":"s","status":1,"details":{"a":"\u0000"}}"#, "details"),
            ("o", #"{"sales_id":"s","status":1,"reason":"a\u0000b"}"#, "reason"),
            ("o", #"{"sales_id":"s","status":1,"note":"x"}"#, "note"),
            ("o", #"{"sales_id":"s","status":1,"message_id":"a b"}"#, "message_id"),
            ("o", #"{"sales_id":"s","status":1,"message_id":7}"#, "message_id"),
            ("o", #"{"sales_id":"s","status":1,"messageId":"a","message_id":"a"}"#, "message_id"),
            ("o", #"{"sales_id":"s","status":1,"expires_in_s":0}"#, "expires_in_s"),
            ("o", #"{"sales_id":"s","status":1,"expiresInS":"60"}"#, "expires_in_s"),
        ])
    func wrongField(order: String, json: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.post("/v1/orders/\(order)/status", json: json).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-field")
            #expect(problem.status == 400)
            #expect(problem.field == field)
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("an unknown status is answered with those that exist")
    func listsStatuses() async throws {
        try await TestServer.run { server in
            let problem = try server.post(
                "/v1/orders/o/status", json: #"{"sales_id":"s","status":"approved"}"#
            ).problem()
            #expect(problem.fix.contains("APPROVED (4)"))
        }
    }

    @Test("templates and QoS follow the configuration")
    func templates() async throws {
        try await TestServer.run(
            with: .init {
                $0.orderTopicTemplate = "{order_id}/of/{sales_id}"
                $0.orderChannelTemplate = "sales/{sales_id}"
                $0.orderQoS = .exactlyOnce
            }
        ) { server in
            #expect(
                try server.post("/v1/orders/o/status", json: #"{"sales_id":"s","status":1}"#).status
                    == 200)
            let publication = try #require(server.broker.publications.first)
            #expect(publication.topic == Array("o/of/s".utf8))
            #expect(publication.sequence?.channel == Array("sales/s".utf8))
            #expect(publication.qos == .exactlyOnce)
        }
    }

    @Test("an identifier cannot lead into $SYS")
    func systemTopic() async throws {
        try await TestServer.run(
            with: .init {
                $0.orderTopicTemplate = "{sales_id}/{order_id}"
            }
        ) { server in
            let problem = try server.post(
                "/v1/orders/o/status", json: #"{"sales_id":"$SYS","status":1}"#
            ).problem()
            #expect(problem.type == "urn:hermes:problem:invalid-topic")
        }
    }
}
