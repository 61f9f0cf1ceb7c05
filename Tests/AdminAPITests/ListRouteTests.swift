import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("/v1/subscriptions, /v1/receivers, /v1/retained")
struct ListRouteTests {
    private static func subscription(_ filter: String) -> ListedSubscription {
        ListedSubscription(
            clientID: "a", userName: nil, connected: true, filter: filter, qos: 1)
    }

    @Test("a page of subscriptions is filled from several pages of the data plane")
    func subscriptions() async throws {
        let all = ["x", "y", "z"].map { Self.subscription($0) }
        try await TestServer.run(StubBroker { $0.subscriptions = all }) { server in
            let first = try server.request("GET", "/v1/subscriptions?limit=2")
            #expect(
                try first.json(SubscriptionPage.self)
                    == SubscriptionPage(
                        subscriptions: Array(all.prefix(2)), next: PlaceCursor(2 as UInt64).text))
            let cursor = PlaceCursor(2 as UInt64).text
            let second = try server.request("GET", "/v1/subscriptions?limit=2&cursor=\(cursor)")
            #expect(
                try second.json(SubscriptionPage.self)
                    == SubscriptionPage(subscriptions: [all[2]], next: nil))
        }
    }

    @Test("receivers of a topic")
    func receivers() async throws {
        try await TestServer.run { server in
            let found = try server.request("GET", "/v1/receivers?topic=a%2Fb&qos=2")
            #expect(try found.json(TopicReceivers.self).topic == "a/b")
        }
    }

    @Test("retained messages: list, one with text, one without, deletion")
    func retained() async throws {
        func message(_ topic: String, _ payload: [UInt8]) -> RetainedMessage {
            RetainedMessage(
                summary: RetainedSummary(
                    topic: topic, qos: 1, payloadBytes: payload.count, expiresAtMs: nil),
                payload: payload)
        }
        let stub = StubBroker {
            $0.retained = [
                "a/b": message("a/b", Array("ä".utf8)), "raw": message("raw", [0xFF, 0]),
            ]
        }
        try await TestServer.run(stub) { server in
            let list = try server.request("GET", "/v1/retained?filter=a%2F%23&limit=5&cursor=61")
            #expect(try list.json(RetainedPage.self).retained.count == 2)
            #expect(
                server.broker.retainedQueries == [
                    RetainedQuery(filter: "a/#", limit: 5, cursor: "61")
                ])
            let text = try server.request("GET", "/v1/retained/message?topic=a%2Fb")
            #expect(try text.json(RetainedModel.self).payload == "ä")
            let raw = try server.request("GET", "/v1/retained/message?topic=raw")
            #expect(try raw.json(RetainedModel.self).payloadBase64 == "/wA=")
            #expect(try server.request("DELETE", "/v1/retained?topic=raw").status == 204)
            for target in ["/v1/retained?topic=raw", "/v1/retained?topic="] {
                let problem = try server.request("DELETE", target).problem()
                #expect(problem.type == "urn:hermes:problem:not-retained")
            }
        }
    }

    @Test(
        "a wrong query is refused by name",
        arguments: [
            ("GET", "/v1/retained?filter=a%23", "filter"),
            ("GET", "/v1/retained?filter=", "filter"),
            ("GET", "/v1/retained?cursor=x", "cursor"),
            ("GET", "/v1/retained/message", "topic"),
            ("DELETE", "/v1/retained?topic=%24SYS%2Fbroker%2Fversion", "topic"),
            ("GET", "/v1/receivers?topic=a%2F%23", "topic"),
            ("GET", "/v1/receivers?topic=a&qos=3", "qos"),
            ("GET", "/v1/subscriptions?client_id=", "client_id"),
            ("GET", "/v1/subscriptions?cursor=2", "cursor"),
            ("GET", "/v1/subscriptions?cursor=-1-\(BrokerRun.name)", "cursor"),
            ("GET", "/v1/scheduled?cursor=4294967296-\(BrokerRun.name)", "cursor"),
            ("GET", "/v1/scheduled?cursor=7-0badc0de0", "cursor"),
            ("GET", "/v1/tags?cursor=7", "cursor"),
            ("GET", "/v1/tags/a/clients?cursor=", "cursor"),
            ("GET", "/v1/devices?cursor=7-", "cursor"),
            ("GET", "/v1/arrivals?cursor=-\(BrokerRun.name)", "cursor"),
        ])
    func wrong(method: String, target: String, field: String) async throws {
        try await TestServer.run { server in
            let problem = try server.request(method, target).problem()
            #expect(problem.field == field)
        }
    }
}
