import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("GET /v1/clients/{id}/explain")
struct ExplainRouteTests {
    private static func broker() -> StubBroker {
        StubBroker { state in
            state.details["p"] = StubBroker.detail("p", connected: false)
            state.events["p"] = [
                ClientEvent(
                    kind: .lostMessages, firstMs: 1, lastMs: 2, count: 3, reason: "queue_full")
            ]
            state.queues["p"] = QueuePage(
                clientID: "p",
                messages: [
                    QueuedMessage(
                        position: 7, state: .waiting, topic: "orders/7/x", qos: 1, retain: false,
                        payloadBytes: 1, messageID: "queued"),
                    QueuedMessage(
                        position: 8, state: .waiting, topic: "secret", qos: 1, retain: false,
                        payloadBytes: 1, messageID: "hidden"),
                ])
            var counts = MessageReceipt.Counts()
            counts.receivers = 1
            state.receipts["taken"] = MessageReceipt(
                messageID: "taken", topic: "orders/7/y", publishedAtMs: 1, counts: counts,
                receivers: [
                    MessageReceipt.Receiver(clientID: "p", state: .acknowledged, atMs: 2)
                ])
        }
    }

    private static func ask(_ server: TestServer, _ query: String = "") throws -> [String] {
        let response = try server.request("GET", "/v1/clients/p/explain\(query)")
        #expect(response.status == 200)
        let explanation = try response.json(ClientExplanation.self)
        #expect(explanation.known)
        #expect(explanation.events.count == 1)
        return explanation.sentences
    }

    @Test("a client's state, whether a topic is for it, and what became of a message")
    func sentences() async throws {
        try await TestServer.run(Self.broker()) { server in
            let plain = try Self.ask(server)
            #expect(plain.first?.hasPrefix("It is offline since ") == true)
            #expect(plain.contains("It subscribes to orders/7/# (QoS 1)."))
            #expect(
                try Self.ask(server, "?topic=a/b").contains(
                    "None of its subscriptions (1) matches a/b."))
            let queued = try Self.ask(server, "?message=queued")
            #expect(queued.first == "The message queued waits in its queue, at position 7.")
            #expect(
                queued.contains("Its subscription orders/7/# (QoS 1) matches orders/7/x."))
            #expect(
                try Self.ask(server, "?message=taken").first?.hasPrefix(
                    "It acknowledged the message taken ") == true)
            #expect(
                try Self.ask(server, "?message=none").first?.hasPrefix(
                    "The broker does not know what became of the message none") == true)
            #expect(server.broker.queueQueries.allSatisfy { $0.limit == PageSize.largest })
        }
    }

    @Test("subscriptions beyond those of the client's detail are looked through for the topic")
    func manySubscriptions() async throws {
        let filters = ["orders/7/#", "b/#", "c/+", "far/+", "z"]
        let broker = StubBroker { state in
            var detail = StubBroker.detail("p")
            detail.summary.subscriptions = filters.count
            state.details["p"] = detail
            state.subscriptions = filters.map {
                ListedSubscription(
                    clientID: "p", userName: nil, connected: true, filter: $0, qos: 1)
            }
            state.queues["p"] = QueuePage(
                clientID: "p",
                messages: [
                    QueuedMessage(
                        position: 7, state: .waiting, topic: "far/2", qos: 1, retain: false,
                        payloadBytes: 1, messageID: "queued")
                ])
        }
        try await TestServer.run(broker) { server in
            func ask(_ query: String) throws -> [String] {
                try server.request("GET", "/v1/clients/p/explain\(query)")
                    .json(ClientExplanation.self).sentences
            }
            let plain = try ask("")
            #expect(plain.contains("It subscribes to orders/7/# (QoS 1) and 4 more."))
            #expect(
                try ask("?topic=far/1").contains("Its subscription far/+ (QoS 1) matches far/1."))
            #expect(
                try ask("?message=queued").contains(
                    "Its subscription far/+ (QoS 1) matches far/2."))
            #expect(
                try ask("?topic=none").contains("None of its subscriptions (5) matches none."))
        }
    }

    @Test("a client that nothing is known of")
    func unknown() async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/v1/clients/nobody/explain?message=m")
            let explanation = try response.json(ClientExplanation.self)
            #expect(!explanation.known)
            #expect(explanation.sentences.count == 2)
            #expect(explanation.sentences.last?.hasPrefix("The broker knows no client") == true)
        }
    }

    @Test(
        "wrong questions are refused by name",
        arguments: [
            ("topic=a&message=b", "topic"), ("topic=", "topic"), ("message=", "message"),
            ("messages=a", "messages"),
        ])
    func wrong(query: String, field: String) async throws {
        try await TestServer.run(Self.broker()) { server in
            let problem = try server.request("GET", "/v1/clients/p/explain?\(query)").problem()
            #expect(problem.status == 400)
            #expect(problem.field == field)
        }
    }
}
