import BrokerAPI
import Testing

@testable import PushServices

/// Every status and reason of Apple's, alone and while other notifications of the same app pass.
@Suite("Apple's answers")
struct AppleAnswerTests {
    struct Case: Sendable, CustomStringConvertible {
        let status: Int
        let reason: String
        /// The end of a notification when nothing else passes, and when others do.
        let alone: WakeAnswer.Outcome
        let besides: WakeAnswer.Outcome
        var endsConnection = false

        init(
            _ status: Int, _ reason: String, _ alone: WakeAnswer.Outcome,
            besides: WakeAnswer.Outcome? = nil, endsConnection: Bool = false
        ) {
            (self.status, self.reason, self.alone) = (status, reason, alone)
            self.besides = besides ?? alone
            self.endsConnection = endsConnection
        }

        var description: String { "\(status) \(reason)" }
    }

    private static let soon = WakeAnswer.Outcome.later(milliseconds: 1_000)
    private static let later = WakeAnswer.Outcome.later(milliseconds: 5_000)

    static let cases = [
        Case(200, "", .accepted),
        Case(400, "BadCollapseId", .refused),
        Case(400, "BadDeviceToken", .badDevice),
        Case(400, "BadExpirationDate", .refused),
        Case(400, "BadMessageId", .refused),
        Case(400, "BadPriority", .refused),
        Case(400, "BadTopic", soon, besides: later),
        Case(400, "DeviceTokenNotForTopic", .badDevice),
        Case(400, "DuplicateHeaders", .refused),
        Case(400, "IdleTimeout", soon, endsConnection: true),
        Case(400, "InvalidPushType", .refused),
        Case(400, "MissingDeviceToken", .refused),
        Case(400, "MissingTopic", soon, besides: later),
        Case(400, "PayloadEmpty", .refused),
        Case(400, "TopicDisallowed", soon, besides: later),
        Case(403, "BadCertificate", soon, besides: later),
        Case(403, "BadCertificateEnvironment", soon, besides: later),
        Case(403, "ExpiredProviderToken", soon, besides: later),
        Case(403, "Forbidden", soon, besides: .badDevice),
        Case(403, "InvalidProviderToken", soon, besides: later),
        Case(403, "MissingProviderToken", soon, besides: later),
        Case(403, "UnrelatedKeyIdInToken", soon, besides: later, endsConnection: true),
        Case(403, "BadEnvironmentKeyIdInToken", soon, besides: .badDevice),
        Case(403, "BadEnvironmentKeyInToken", soon, besides: .badDevice),
        Case(404, "BadPath", .refused),
        Case(405, "MethodNotAllowed", .refused),
        Case(410, "ExpiredToken", .gone(atMs: 17)),
        Case(410, "Unregistered", .gone(atMs: 17)),
        Case(413, "PayloadTooLarge", .refused),
        Case(
            429, "TooManyProviderTokenUpdates", soon, besides: .later(milliseconds: 60_000),
            endsConnection: true),
        Case(429, "TooManyRequests", .later(milliseconds: 60_000)),
        Case(500, "InternalServerError", later),
        Case(503, "ServiceUnavailable", later),
        Case(503, "Shutdown", soon, endsConnection: true),
    ]

    private static func answer(
        _ status: Int, _ reason: String, timestamp: Int = 17
    ) -> AppleAnswer {
        let text = #"{"reason":"\#(reason)","timestamp":\#(timestamp)}"#
        return AppleAnswer(status: status, body: Array(text.utf8))
    }

    @Test("each reason has its end, alone and beside others that pass", arguments: cases)
    func ends(_ one: Case) {
        let answer = Self.answer(one.status, one.reason)
        #expect(ProviderAnswer(answer).endsConnection == one.endsConnection)
        for besides in [false, true] {
            let queue = QueueUnderTest()
            if besides {
                queue.enqueue(1)
                queue.answerAll(with: AppleAnswer(status: 200, body: []))
                _ = queue.takeOutcomes()
            }
            queue.enqueue(2)
            // A connection that ends is no verdict, until that has happened three times.
            for _ in 0..<(answer.meaning == .closing ? 3 : 1) { queue.answerAll(with: answer) }
            #expect(queue.takeOutcomes() == [besides ? one.besides : one.alone])
            // Whatever one device is answered, the next is told within a second.
            queue.now += 1_000
            if one.reason == "TooManyProviderTokenUpdates", !besides { queue.now += 9_000 }
            queue.enqueue(3)
            queue.answerAll(with: AppleAnswer(status: 200, body: []))
            #expect(queue.takeOutcomes() == [.accepted])
        }
    }

    @Test("a reason is one short plain word, or it is not believed")
    func reasons() {
        #expect(Self.answer(400, String(repeating: "A", count: 65)).reason == "")
        #expect(Self.answer(400, "a b").word == "status 400")
        #expect(AppleAnswer(status: 500, body: Array("<html>".utf8)).word == "status 500")
        #expect(AppleAnswer(status: 500, body: Array("[1]".utf8)).reason == "")
    }
}

/// A queue with a clock, whose notifications go on one connection.
final class QueueUnderTest {
    var queue: NotificationQueue
    var now: UInt64 = 1_000_000
    private(set) var open: [UInt32] = []

    /// Apps with a certificate of their own are `apps`.
    init(_ apps: (bundle: String, environment: Device.Environment?)...) {
        func identity(_ name: String) -> APNsSettings.Identity {
            .certificate(file: name, keyFile: nil, passwordFile: nil)
        }
        let endpoint = ServiceEndpoint(host: "localhost", port: 1)
        var settings = APNsSettings(
            production: endpoint, sandbox: endpoint, identity: identity("usual"))
        settings.apps = apps.map {
            APNsSettings.App(
                bundle: $0.bundle, environment: $0.environment,
                identity: identity($0.bundle))
        }
        queue = NotificationQueue(ServiceRoutes(settings))
    }

    func enqueue(
        _ device: UInt64, _ bundle: String = "app", sandbox: Bool = false, attempt: Int = 0
    ) {
        var request = NotificationRequest(
            handOut: HandOut(device: device, number: 1), token: [1],
            environment: sandbox ? .sandbox : .production, topic: bundle, kind: .alert,
            expiration: 0, collapseID: "c", notificationID: (1, 2), payload: [])
        request.attempt = attempt
        queue.enqueue(request, at: now)
    }

    /// Puts on streams what may be sent to a service now; returns how many.
    func send(to service: Int = 0, most: Int = .max, connection: Int = 0) -> Int {
        var count = 0
        while count < most, let tag = queue.next(for: service, at: now) {
            queue.sent(tag, on: connection, tokenIssuedAt: 1, at: now)
            open.append(tag)
            count += 1
        }
        return count
    }

    /// Answers what is on streams, in its order.
    func answer(_ answer: (UInt64) -> AppleAnswer) {
        let tags = open
        open = []
        for tag in tags {
            let device = queue.request(tag)?.handOut.device ?? 0
            queue.answered(tag, ProviderAnswer(answer(device)), at: now)
        }
    }

    func answerAll(with answer: AppleAnswer, to service: Int = 0) {
        _ = send(to: service)
        self.answer { _ in answer }
    }

    func endStreams(isUnprocessed: Bool) {
        let tags = open
        open = []
        for tag in tags { queue.streamEnded(tag, isUnprocessed: isUnprocessed, at: now) }
    }

    func loseConnection(wasUseful: Bool) {
        open = []
        queue.connectionLost(0, wasUseful: wasUseful, "lost")
    }

    func takeOutcomes() -> [WakeAnswer.Outcome] { queue.takeAnswers().map(\.outcome) }
}
