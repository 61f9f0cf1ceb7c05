import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("POST /v1/publish")
struct PublishRouteTests {
    @Test("the body reaches the data plane byte for byte, with the defaults")
    func rawBody() async throws {
        try await TestServer.run { server in
            let body: [UInt8] = [0, 1, 0xFF, 0x0A, 0x0D, 0x80]
            let response = try server.request("POST", "/v1/publish?topic=a/b%20c", body: body)
            #expect(response.status == 200)
            #expect(response["Content-Type"] == "application/json")
            #expect(response["Cache-Control"] == "no-store")
            #expect(response["X-Content-Type-Options"] == "nosniff")
            #expect(response["Date"]?.hasSuffix(" GMT") == true)
            let result = try response.json(PublishResult.self)
            #expect(result.messageID.utf8.count == 36)
            var publication = Publication(
                topic: Array("a/b c".utf8), payload: body, qos: .atLeastOnce)
            publication.messageID = Array(result.messageID.utf8)
            publication.owner = Caller.admin.owner
            #expect(server.broker.publications == [publication])
            #expect(
                result
                    == PublishResult(
                        messageID: result.messageID, durability: "none",
                        counts: PublishCounts(matched: 3, online: 2, queued: 1, dropped: 0),
                        duplicate: false))
        }
    }

    @Test("qos and retain are taken from the query, an empty body is a message")
    func options() async throws {
        try await TestServer.run { server in
            let target = "/v1/publish?retain=true&topic=%E2%82%AC%20x&qos=2"
            let response = try server.request("POST", target, body: [])
            #expect(response.status == 200)
            var publication = Publication(
                topic: Array("€ x".utf8), payload: [], qos: .exactlyOnce, retain: true)
            publication.messageID = Array(try response.json(PublishResult.self).messageID.utf8)
            publication.owner = Caller.admin.owner
            #expect(server.broker.publications == [publication])
        }
    }

    @Test("the caller's name for the message and its time to live are taken from the query")
    func nameAndExpiry() async throws {
        try await TestServer.run { server in
            let before = unixMilliseconds()
            let target = "/v1/publish?topic=t&message_id=order-x%2F7&expires_in_s=60"
            let response = try server.request("POST", target, body: [1])
            #expect(try response.json(PublishResult.self).messageID == "order-x/7")
            #expect(server.broker.publications.first?.messageID == Array("order-x/7".utf8))
            let expiry = try #require(server.broker.publications.first?.expiresAtMs)
            #expect((before + 60_000...unixMilliseconds() + 60_000).contains(expiry))
        }
    }

    @Test("a chunked body is put together")
    func chunked() async throws {
        try await TestServer.run { server in
            let connection = try server.connect()
            try connection.send(
                TestServer.head(
                    "POST", "/v1/publish?topic=t", headers: ["Transfer-Encoding: chunked"]))
            try connection.send("3\r\nabc\r\n")
            try connection.send("2\r\nde\r\n0\r\n\r\n")
            #expect(try connection.readResponse().status == 200)
            #expect(server.broker.publications.map(\.payload) == [Array("abcde".utf8)])
        }
    }

    @Test(
        "a wrong query is refused by name",
        arguments: [
            ("", "invalid-query", "topic"),
            ("?qos=1", "invalid-query", "topic"),
            ("?topic=t&qos=3", "invalid-query", "qos"),
            ("?topic=t&qos=-1", "invalid-query", "qos"),
            ("?topic=t&qos=one", "invalid-query", "qos"),
            ("?topic=t&retain=yes", "invalid-query", "retain"),
            ("?topic=t&retain=1", "invalid-query", "retain"),
            ("?topic=a/+/b", "invalid-query", "topic"),
            ("?topic=t&message_id=", "invalid-query", "message_id"),
            ("?topic=t&message_id=a%20b", "invalid-query", "message_id"),
            ("?topic=t&message_id=a%00", "invalid-query", "message_id"),
            (
                "?topic=t&message_id=" + String(repeating: "x", count: 129), "invalid-query",
                "message_id"
            ),
            ("?topic=t&expires_in_s=0", "invalid-query", "expires_in_s"),
            ("?topic=t&expires_in_s=4294967296", "invalid-query", "expires_in_s"),
            ("?topic=t&expires_in_s=1.5", "invalid-query", "expires_in_s"),
            ("?topic=t&topic=u", "invalid-query", "topic"),
            ("?topic=t&colour=red", "invalid-query", "colour"),
            ("?topic=t&bad=%E2%82", "invalid-query", nil),
            ("?topic=t%2", "invalid-query", nil),
            ("?topic=", "invalid-topic", "topic"),
            ("?topic=a/%2B/b", "invalid-topic", "topic"),
            ("?topic=a/%23", "invalid-topic", "topic"),
            ("?topic=a%00b", "invalid-topic", "topic"),
            ("?topic=$SYS/broker/uptime", "invalid-topic", "topic"),
            ("?topic=$SYS", "invalid-topic", "topic"),
            ("?topic=$hermes/device", "invalid-topic", "topic"),
            ("?topic=$CONTROL/dynamic-security/v1", "invalid-topic", "topic"),
            // A slash and a combining acute accent: one character, but two code points.
            ("?topic=$SYS/%CC%81x", "invalid-topic", "topic"),
            ("?topic=1/2/3/4/5", "invalid-topic", "topic"),
        ] as [(String, String, String?)])
    func wrongQuery(query: String, kind: String, field: String?) async throws {
        try await TestServer.run(
            with: .init {
                $0.maximumTopicLevels = 4
            }
        ) { server in
            let response = try server.request("POST", "/v1/publish" + query, body: [1])
            let problem = try response.problem()
            #expect(problem.status == 400)
            #expect(problem.type == "urn:hermes:problem:" + kind)
            #expect(problem.field == field)
            #expect(server.broker.publications.isEmpty)
        }
    }

    @Test("an unknown parameter is answered with those that exist")
    func listsParameters() async throws {
        try await TestServer.run { server in
            let problem = try server.request("POST", "/v1/publish?topc=t", body: []).problem()
            #expect(problem.fix.contains("topic, qos, retain"))
        }
    }

    @Test("control characters of a topic are written out in the problem")
    func escapesTopic() async throws {
        try await TestServer.run { server in
            let problem = try server.request("POST", "/v1/publish?topic=%1B[31m%0A%2B", body: [])
                .problem()
            #expect(problem.detail.contains("\\u{1B}[31m\\n+"))
        }
    }

    @Test("a topic of 65,535 bytes is taken and a longer one refused")
    func longestTopic() throws {
        let longest = String(repeating: "t", count: 65_535)
        #expect(
            try PublishTopic(longest, maximumLevels: 1, field: "topic").bytes.count == 65_535)
        #expect(throws: Problem.self) {
            try PublishTopic(longest + "t", maximumLevels: 1, field: "topic")
        }
    }

    @Test("the largest message that makes a packet of the limit is taken, and none larger")
    func packetLimit() async throws {
        try await TestServer.run(
            with: .init {
                $0.maximumBodyBytes = 1000
            }
        ) { server in
            // Fixed header 3, topic 2 + 1, packet identifier 2.
            let fits = try server.request(
                "POST", "/v1/publish?topic=t", body: .init(repeating: 7, count: 992))
            #expect(fits.status == 200)
            let problem = try server.request(
                "POST", "/v1/publish?topic=t", body: .init(repeating: 7, count: 993)
            ).problem()
            #expect(problem.status == 413)
            #expect(problem.detail.contains("1001 bytes; the limit is 1000"))
            #expect(server.broker.publications.count == 1)
        }
    }

    @Test(
        "a data plane that takes nothing is 503 with Retry-After",
        arguments: [
            (BrokerUnavailable.overloaded, "overloaded"), (.stopping, "stopping"),
        ])
    func unavailable(reason: BrokerUnavailable, kind: String) async throws {
        try await TestServer.run(StubBroker { $0.unavailable = reason }) { server in
            for response in [
                try server.request("POST", "/v1/publish?topic=t", body: []),
                try server.request("GET", "/v1/status"),
                try server.request("GET", "/v1/clients"),
                try server.request("GET", "/v1/clients/x"),
                try server.request("DELETE", "/v1/clients/x"),
            ] {
                #expect(try response.problem().type == "urn:hermes:problem:" + kind)
                #expect(response.status == 503)
                #expect(response["Retry-After"].flatMap { Int($0) } != nil)
            }
        }
    }
}
