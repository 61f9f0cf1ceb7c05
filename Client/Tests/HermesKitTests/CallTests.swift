import Foundation
import NIOConcurrencyHelpers
import Testing

@testable import HermesKit

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
        let folder = TestFolder()
        var broker = try await TestBroker(folder: folder)
        let client = try HermesClient.of(broker)
        broker.stop()
        client.start()
        let subscribing = Task { try await client.subscribe("news", qos: .atLeastOnce) }
        let receipt = try await client.publish(.init(topic: "else", text: "1"))
        let waiting = Task { try await receipt.acknowledged }
        for task in [Task { _ = try await subscribing.value }, waiting] {
            subscribing.cancel()
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        broker = try await TestBroker(port: broker.port, folder: folder)
        client.reconnectNow()
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
            await #expect(throws: HermesClientError.stopped(.requested)) {
                try await subscribing.value
            }
            await #expect(throws: HermesClientError.stopped(.requested)) {
                try await waiting.value
            }
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

    @Test("calls throw the reason for which the client is stopped, and go on after start()")
    func stoppedReasons() async throws {
        let folder = TestFolder()
        try "phone:wrong".write(
            toFile: folder.path + "/passwords", atomically: true, encoding: .utf8)
        let broker = try await TestBroker(folder: folder, ["allow_anonymous false"])
        let client = try HermesClient.of(
            broker, credentials: .fixed(userName: "phone", password: "wrong"))
        await #expect(throws: HermesClientError.stopped(.notStarted)) {
            try await client.subscribe("news", qos: .atLeastOnce)
        }
        let receipt = try await client.publish(.init(topic: "a", text: "1"))
        await #expect(throws: HermesClientError.stopped(.notStarted)) {
            try await receipt.acknowledged
        }
        client.start()
        // They begin to wait before or after the refusal, and throw in both cases.
        await #expect(throws: HermesClientError.stopped(.credentialsRefused)) {
            try await receipt.acknowledged
        }
        await #expect(throws: HermesClientError.stopped(.credentialsRefused)) {
            try await client.subscribe("news", qos: .atLeastOnce)
        }
        await #expect(throws: HermesClientError.stopped(.credentialsRefused)) {
            try await client.unsubscribe("news")
        }
        await client.stop()
        await #expect(throws: HermesClientError.stopped(.requested)) {
            try await client.subscribe("news", qos: .atLeastOnce)
        }
        await #expect(throws: HermesClientError.stopped(.requested)) {
            try await receipt.acknowledged
        }
        let letIn = try await TestBroker()
        let other = try HermesClient.of(letIn)
        let early = try await other.publish(.init(topic: "a", text: "1"))
        other.start()
        try await early.acknowledged
        await other.stop()
    }

    @Test("a dead address beside a live one", arguments: 0..<4)
    func deadAddress(round: Int) async throws {
        let dead = try await TestBroker()
        dead.stop()
        let broker = try await TestBroker()
        let client = try HermesClient(
            .init(
                [.plain("127.0.0.1", port: dead.port), .plain("127.0.0.1", port: broker.port)],
                clientID: "phone", storage: .none))
        client.start()
        try await client.connected()
        #expect(client.state == .connected(sessionPresent: false))
        await client.stop()
        let alone = try HermesClient(
            .init(.plain("127.0.0.1", port: dead.port), clientID: "phone", storage: .none))
        alone.start()
        try await wait {
            if case .waiting(_, .retrying, let cause?) = alone.state {
                return cause.kind == .connectionRefused
            }
            return false
        }
        await alone.stop()
        #expect(throws: HermesClientError.self) {
            try HermesClient(.init([], clientID: "phone", storage: .none))
        }
    }

    @Test("the background ends though the foreground follows at once, and the last call counts")
    func backgroundAndForeground() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        for _ in 0..<10 {
            try await client.connected()
            let closed = NIOLockedValueBox(false)
            client.enteredBackground { closed.withLockedValue { $0 = true } }
            client.enteredForeground()
            try await wait { closed.withLockedValue { $0 } }
        }
        try await client.connected()
        await client.stop()
    }

    @Test("a wake-up returns when the app comes into the foreground")
    func wakeUp() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.connected()
        await client.enteredBackground()
        async let wake: Void = client.wokenByPush()
        try await client.connected()
        client.enteredForeground()
        await wake
        // In the foreground there is nothing to wait for.
        await client.wokenByPush()
        try await client.connected()
        await client.stop()
    }

    #if os(Linux)
        @Test("stop() leaves no socket behind that has not connected")
        func halfOpenSockets() async throws {
            let full = try FullListener()
            let client = try HermesClient(
                .init(.plain(full.host, port: full.port), clientID: "phone", storage: .none))
            client.start()
            try await wait { try full.connecting() > 0 }
            await client.stop()
            #expect(try full.connecting() == 0)
        }
    #endif

    @Test("the log has states and events, a line each, with its level")
    func log() async throws {
        let broker = try await TestBroker()
        let lines = NIOLockedValueBox<[HermesClient.LogLine]>([])
        var configuration = HermesClient.Configuration(
            .plain("127.0.0.1", port: broker.port), clientID: "phone", storage: .none)
        configuration.log = { line in lines.withLockedValue { $0.append(line) } }
        let client = try HermesClient(configuration)
        client.start()
        try await client.connected()
        broker.stop()
        try await wait { if case .waiting = client.state { true } else { false } }
        await client.stop()
        let told = lines.withLockedValue { $0 }
        #expect(
            told.prefix(3).map(\.message) == [
                "state: connecting, try 1", "state: connected, with a new session",
                "event: disconnected: the broker, or something between, closed the connection",
            ])
        #expect(told.prefix(3).map(\.level) == [.debug, .info, .info])
        #expect(told.last?.message == "state: stopped, as asked")
        let hostile = HermesClient.Event.renewalRefused(filter: "a\nb")
        #expect("\(hostile)" == "the broker refused a\\u{a}b")
    }

    @Test("refused filters leave nothing behind")
    func refusedFilters() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        for number in 0..<1_000 {
            await #expect(throws: HermesClientError.self) {
                try await client.subscribe("\(number)/#/", qos: .atLeastOnce)
            }
        }
        #expect(try await client.engine.perform { $0.answers.count } == 0)
    }

    @Test("a discarded message's receipt says so")
    func discarded() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        let receipt = try await client.publish(.init(topic: "a", text: "1"))
        let waiting = try #require(await client.outbox().first)
        #expect(waiting.message.topic == "a" && !waiting.isHeldBack)
        #expect(await client.discard(waiting.id))
        await #expect(throws: HermesClientError.discarded) { try await receipt.acknowledged }
        #expect(await client.outbox().isEmpty)
        #expect(await client.discard(waiting.id) == false)
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
