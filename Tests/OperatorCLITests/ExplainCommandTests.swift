import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl explain")
struct ExplainCommandTests {
    private static let explanation = ClientExplanation(
        clientID: "p\u{1B}", known: true,
        sentences: ["It is away.", "It subscribes to a\u{1B} (QoS 1)."],
        events: [
            ClientEvent(
                kind: .connected, firstMs: 1, lastMs: now - 5_000, count: 1, reason: "new",
                userName: "an\nn")
        ])

    @Test("one call, the sentences, then the events as a table; what is untrusted is escaped")
    func command() async throws {
        let run = try await run(["explain", "p\u{1B}"], answers: [.ok(Self.explanation)])
        #expect(run.exitCode == 0)
        #expect(run.output.hasPrefix("p\\u{1B}\n- It is away.\n"))
        #expect(run.output.contains("- It subscribes to a\\u{1B} (QoS 1).\n"))
        #expect(run.output.contains("connected  new"))
        #expect(run.output.contains("5s ago"))
        #expect(run.output.contains("an\\nn"))
        #expect(
            run.requests.map(\.url) == ["http://127.0.0.1:8080/v1/clients/p%1B/explain"])
    }

    @Test("a topic and a message go along, and an unknown client fails")
    func questions() async throws {
        var unknown = Self.explanation
        unknown.known = false
        let topic = try await run(
            ["explain", "p", "--topic", "a/b"], answers: [.ok(unknown)])
        #expect(topic.exitCode == 1)
        #expect(topic.output.contains("It is away."))
        #expect(topic.requests.first?.url.hasSuffix("/explain?topic=a%2Fb") == true)
        let message = try await run(
            ["explain", "p", "--message", "m-1", "--json"], answers: [.ok(Self.explanation)])
        #expect(message.exitCode == 0)
        #expect(message.requests.first?.url.hasSuffix("/explain?message=m-1") == true)
        #expect(message.output.hasPrefix(#"{"client_id":"p","events":[{"#))
        #expect(!message.output.contains("known"))
    }
}
