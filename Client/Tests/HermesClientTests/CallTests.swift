import Foundation
import HermesClient
import Testing

@Suite("Calls and their errors", .timeLimit(.minutes(2)))
struct CallTests {
    @Test("4, 13: a publish without a connection is stored, and acknowledged when there is one")
    func publishOffline() async throws {
        let folder = TestFolder()
        let broker = try await TestBroker()
        do {
            let client = try HermesClient.of(broker, storage: .file(folder.path + "/log"))
            _ = try await client.publish(.init(topic: "a", text: "1", qos: .exactlyOnce))
            #expect(await client.statistics().unacknowledgedPublishes == 1)
            await #expect(throws: HermesClientError.notConnected) {
                try await client.publish(.init(topic: "a", text: "1", qos: .atMostOnce))
            }
        }
        let client = try HermesClient.of(broker, storage: .file(folder.path + "/log"))
        let receipt = try await client.publish(.init(topic: "a", text: "2"))
        client.start()
        try await receipt.acknowledged
        try await wait { await client.statistics().unacknowledgedPublishes == 0 }
        await client.stop()
    }

    @Test("a cancelled task stops waiting, and what it asked for stays")
    func cancelledCalls() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        let subscribing = Task { try await client.subscribe("news", qos: .atLeastOnce) }
        let receipt = try await client.publish(.init(topic: "else", text: "1"))
        let waiting = Task { try await receipt.acknowledged }
        for task in [Task { _ = try await subscribing.value }, waiting] {
            subscribing.cancel()
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        client.start()
        try await receipt.acknowledged
        _ = try await client.publish(.init(topic: "news", text: "kept"))
        #expect(await client.take(1).map(\.text) == ["kept"])
        await client.stop()
    }

    @Test("stop() lets waiting calls throw")
    func stopped() async throws {
        let broker = try await TestBroker()
        broker.stop()
        let client = try HermesClient.of(broker)
        client.start()
        let receipt = try await client.publish(.init(topic: "a", text: "1"))
        let subscribing = Task { try await client.subscribe("news", qos: .atLeastOnce) }
        let waiting = Task { try await receipt.acknowledged }
        try await wait {
            if case .waiting = client.state { return true }
            return false
        }
        let ended = Task {
            await #expect(throws: HermesClientError.stopped) { try await subscribing.value }
            await #expect(throws: HermesClientError.stopped) { try await waiting.value }
            return true
        }
        // A task may begin to wait only after the first of these.
        let stops = Task {
            while !Task.isCancelled {
                await client.stop()
                await Task.yield()
            }
        }
        #expect(await ended.value)
        stops.cancel()
        await stops.value
    }

    @Test("what cannot be right is an error at the call, which says what is needed")
    func errors() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        for filter in ["a/#/b", "a+", "", "a\0"] {
            await #expect(throws: HermesClientError.filter(filter)) {
                try await client.subscribe(filter, qos: .atLeastOnce)
            }
        }
        for topic in ["a/+", "#", "", "a\0", String(repeating: "a", count: 65_536)] {
            await #expect(throws: HermesClientError.topic(topic)) {
                try await client.publish(.init(topic: topic, text: ""))
            }
        }
        await #expect(throws: HermesClientError.qosNeedsStorage) {
            try await client.subscribe("a", qos: .exactlyOnce)
        }
        await #expect(throws: HermesClientError.qosNeedsStorage) {
            try await client.publish(.init(topic: "a", text: "", qos: .exactlyOnce))
        }
        await #expect(throws: HermesClientError.payloadTooLarge(bytes: 1_048_585, limit: 1_048_576))
        {
            try await client.publish(
                .init(topic: "a", payload: Array(repeating: 0, count: 1_048_576)))
        }
        await client.stop()
    }

    @Test("the outbox has a limit, and says so")
    func outboxFull() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        for _ in 0..<1_000 { _ = try await client.publish(.init(topic: "a", text: "1")) }
        await #expect(throws: HermesClientError.outboxFull) {
            try await client.publish(.init(topic: "a", text: "1"))
        }
        client.start()
        try await wait { await client.statistics().unacknowledgedPublishes == 0 }
        await client.stop()
    }

    @Test(
        "a configuration that cannot be right is refused",
        arguments: [
            ("pins", HermesClient.Server.tls("localhost", pins: []), "phone"),
            ("host", .plain(""), "phone"), ("port", .plain("localhost", port: 0), "phone"),
            ("clientID", .plain("localhost"), ""), ("clientID", .plain("localhost"), "a\0b"),
            (
                "root",
                .tls(
                    "localhost",
                    pins: [try pin(1), try pin(2)], roots: .pem(Array("nonsense".utf8))),
                "phone"
            ),
            ("pins", .tls("localhost", pins: [try pin(1), try pin(1)]), "phone"),
        ])
    func configurations(word: String, server: HermesClient.Server, clientID: String) throws {
        let error = #expect(throws: HermesClientError.self) {
            try HermesClient(.init(server, clientID: clientID, storage: .none))
        }
        #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }

    private static func pin(_ byte: UInt8) throws -> HermesClient.PublicKeyPin {
        try .init(Data(repeating: byte, count: 32).base64EncodedString())
    }

    @Test(
        "texts that are no pins",
        arguments: [
            "", "sha256/", "sha256/AAAA", "sha1/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
            "47DEQpj8HBSa*/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        ])
    func pins(text: String) {
        #expect(throws: HermesClientError.self) { try HermesClient.PublicKeyPin(text) }
    }

    @Test("10: calls from many tasks at once")
    func manyTasks() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<32 {
                group.addTask {
                    for round in 0..<20 {
                        let filter = "tasks/\(task)/\(round)"
                        try await client.subscribe(filter, qos: .atLeastOnce)
                        let receipt = try await client.publish(.init(topic: filter, text: "x"))
                        if round % 3 == 0 { client.networkChanged(to: "network \(task)") }
                        try await receipt.acknowledged
                        try await client.unsubscribe(filter)
                    }
                }
            }
            group.addTask {
                for await delivery in client.deliveries.prefix(320) { delivery.acknowledge() }
            }
            try await group.waitForAll()
        }
        #expect(await client.statistics().published == 640)
        await client.stop()
    }
}
