import BrokerAPI
import Glibc
import HermesTesting
import Logging
import Synchronization
import Testing

@testable import Webhook

@Suite("The sender of events", .timeLimit(.minutes(1)))
struct WebhookSenderTests {
    private let folder: TemporaryFolder
    private let sender: WebhookSender

    init() throws {
        folder = try TemporaryFolder()
        var settings = WebhookSettings(
            url: "https://office.example/",
            secretFile: try folder.write("0123456789abcdef", to: "secret"))
        settings.longestPause = .seconds(8)
        sender = try WebhookSender(settings, logger: Logger(label: "webhook"))
    }

    /// Runs the sender until the receiver has taken all events.
    private func run(
        _ feed: FakeFeed, _ receiver: FakeReceiver, _ time: FakeTime, until last: UInt64
    ) async throws {
        let running = Task { [sender] in await sender.run(feed, over: receiver, time.webhookTime) }
        while feed.taken.last != last { await Task.yield() }
        running.cancel()
        await running.value
        #expect(receiver.isClosed)
    }

    @Test("sends batch after batch, and each event once, when the receiver takes them")
    func inOrder() async throws {
        let feed = FakeFeed((1...10).map { event($0) }, most: 4)
        let receiver = FakeReceiver()
        let time = FakeTime()
        try await run(feed, receiver, time, until: 10)
        #expect(receiver.requests.map(\.numbers) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]])
        #expect(feed.taken == [4, 8, 10])
        #expect(time.pauses.isEmpty)
        #expect(sender.figures.events["delivered"] == 10)
        #expect(sender.figures.lastSuccessAtMs == 1_700_000_000_000)
    }

    @Test("repeats a batch until the receiver takes it, and only then sends the next")
    func repeats() async throws {
        let feed = FakeFeed((1...4).map { event($0) }, most: 2)
        let receiver = FakeReceiver([
            .noAnswer("refused"), .status(500, retryAfter: nil), .status(404, retryAfter: nil),
            .status(429, retryAfter: .seconds(7)), .status(302, retryAfter: .seconds(70)),
            .accepted, .status(503, retryAfter: nil),
        ])
        let time = FakeTime()
        try await run(feed, receiver, time, until: 4)
        let requests = receiver.requests
        #expect(
            requests.map(\.numbers) == Array(repeating: [1, 2], count: 6) + [[3, 4], [3, 4]])
        #expect(feed.taken == [2, 4])
        #expect(time.pauses == [1, 2, 4, 8, 8, 1].map { .seconds($0) })
        // A repeat is known by its name and its bytes; its time and so its signature are new.
        #expect(Set(requests.map { $0.header("Hermes-Delivery") }).count == 2)
        #expect(Set(requests.map(\.body)).count == 2)
        #expect(Set(requests.map { $0.header("Hermes-Signature") }).count == 8)
        #expect(
            sender.figures.events
                == ["delivered": 4, "refused": 4, "unavailable": 6, "unreachable": 2])
        #expect(sender.figures.failure == nil)
    }

    @Test("asks again after a second when the broker does not answer")
    func silentBroker() async throws {
        let feed = FakeFeed([event(1)], most: 1, failures: 2)
        let time = FakeTime()
        try await run(feed, FakeReceiver(), time, until: 1)
        #expect(time.pauses == [.seconds(1), .seconds(1)])
    }

    @Test("a new secret signs the next attempt, also at the same batch")
    func rotation() async throws {
        let sender = sender
        let (new, path) = (
            try folder.write("fedcba9876543210", to: "new"), folder.file("secret")
        )
        let feed = FakeFeed([event(1)], most: 1)
        let receiver = FakeReceiver([.status(401, retryAfter: nil)]) { count in
            guard count == 1 else { return }
            rename(new, path)
            guard let read = try? sender.credentials.read() else { return }
            #expect(sender.credentials.isChanged(by: read))
            sender.credentials.use(read)
            #expect(!sender.credentials.isChanged(by: read))
        }
        try await run(feed, receiver, FakeTime(), until: 1)
        let request = try #require(receiver.requests.last)
        let secret = try sender.credentials.read().secret
        let message = Array("1700000001.".utf8) + request.body
        #expect(
            request.header("Hermes-Signature")
                == "t=1700000001,v1=\(secret.signature(of: message))")
    }

    @Test("a cancelled attempt ends the sender, and takes and counts nothing")
    func cancelled() async {
        let feed = FakeFeed([event(1)], most: 1)
        let sent = AsyncStream.makeStream(of: Void.self)
        let receiver = FakeReceiver([.noAnswer("cancelled")]) { _ in
            sent.continuation.yield()
            await untilCancelled()
        }
        let running = Task { [sender] in
            await sender.run(feed, over: receiver, FakeTime().webhookTime)
        }
        for await _ in sent.stream { break }
        running.cancel()
        await running.value
        #expect(feed.taken.isEmpty)
        #expect(receiver.requests.count == 1)
        #expect(receiver.isClosed)
        #expect(sender.figures.events.values.allSatisfy { $0 == 0 })
    }

    @Test("all problems of the files are told together")
    func files() throws {
        var settings = WebhookSettings(
            url: "https://office.example/",
            secretFile: try folder.write("0123456789abcdef", to: "open", mode: 0o644))
        settings.caFile = try folder.write("no certificate", to: "ca.crt")
        let error = #expect(throws: WebhookFiles.Unusable.self) {
            try WebhookSender(settings, logger: Logger(label: "webhook"))
        }
        let lines = error?.description.split(separator: "\n") ?? []
        #expect(lines.count == 2)
        #expect(lines.first?.hasPrefix("webhook.secret_file: ") == true)
        #expect(lines.last?.hasPrefix("webhook.ca_file: ") == true)
    }
}
