import NIOConcurrencyHelpers
import Observation
import Testing

@testable import HermesKit

@Suite("A client for views", .timeLimit(.minutes(2)))
struct ObservedTests {
    @Test("state and messages of a filter are seen, the newest of them, also after another start")
    @MainActor
    func observed() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        let all = HermesClient.Observed(client)
        let some = HermesClient.Observed(client, matching: "a/+", keeping: 2)
        #expect(all.state == .stopped(.notStarted) && !all.isConnected)
        for round in 0..<2 {
            client.start()
            try await client.subscribe("#", qos: .atLeastOnce)
            try await wait { all.isConnected && some.isConnected }
            let changes = NIOLockedValueBox(0)
            withObservationTracking {
                _ = some.messages
            } onChange: {
                changes.withLockedValue { $0 += 1 }
            }
            for topic in ["a/1", "b/1", "a/2", "a/3"] {
                try await client.publish(.init(topic: topic, text: "x")).acknowledged
            }
            _ = await client.take(4)
            try await wait { all.messages.count == 4 * (round + 1) }
            try await wait { some.messages.last?.id == 3 * (round + 1) }
            #expect(some.messages.map(\.message.topic) == ["a/2", "a/3"])
            #expect(changes.withLockedValue { $0 } == 1)
            await client.stop()
            try await wait { all.state == .stopped(.requested) }
        }
    }

    @Test("what nobody looks at any more ends, and its client with it")
    @MainActor
    func ends() async throws {
        let broker = try await TestBroker()
        var client: HermesClient? = try .of(broker)
        weak let weakClient = client
        var observed = client.map { HermesClient.Observed($0) }
        weak let weakObserved = observed
        client?.start()
        try await wait { observed?.isConnected == true }
        observed = nil
        client = nil
        try await wait { weakObserved == nil && weakClient == nil }
    }
}
