import Foundation
import Testing

@testable import HermesKit

@Suite("Foundation's types")
struct FoundationTests {
    @Test("errors tell their sentence where Foundation asks for it")
    func localizedErrors() {
        let error: any Error = HermesClientError.stopped(.credentialsRefused)
        #expect(
            error.localizedDescription
                == "the client is stopped, because the broker refuses the credentials; "
                + "what the call asked for is kept")
    }

    @Test("payloads go and come as Data, and times come as Date")
    func dataAndDate() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.subscribe("a", qos: .atLeastOnce)
        let begin = Date()
        _ = try await client.publish(.init(topic: "a", data: Data([0, 255])))
        let delivery = try #require(await client.take(1).first)
        #expect(delivery.data == Data([0, 255]))
        #expect(abs(delivery.receivedAt.timeIntervalSince(begin)) < 60)
        let since = try #require(await client.statistics().since)
        #expect(abs(since.timeIntervalSince(begin)) < 60)
        await client.stop()
    }

    @Test("counters of before the first connection have no date")
    func noDate() {
        #expect(HermesClient.Statistics().since == nil)
    }
}
