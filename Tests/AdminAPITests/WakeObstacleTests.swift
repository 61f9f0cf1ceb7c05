import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Why no notification reaches a device")
struct WakeObstacleTests {
    private static let obstacle =
        "nothing is sent to Apple: it refuses the key; compare key_id (hermesctl devices status)"

    private static func detail(_ kind: Device.Kind) -> DeviceDetail {
        DeviceDetail(
            clientID: "p",
            device: Device(
                kind: kind, token: [0x61], bundle: "b", environment: .production,
                registeredAtMs: 0), wake: .waiting, waiting: 2)
    }

    private static func broker(_ kind: Device.Kind, _ trial: WakeTrial) -> StubBroker {
        StubBroker { state in
            state.devices["p"] = detail(kind)
            state.trial = trial
            var client = StubBroker.detail("p", connected: false)
            client.devices = [DeviceModel(detail(kind))]
            state.details["p"] = client
        }
    }

    private static var paused: TestServer.Changes {
        TestServer.Changes {
            $0.wakes = {
                var figures = PushFigures()
                figures.troubles = [
                    PushFigures.Trouble(
                        environment: "sandbox", bundle: nil, isPaused: true, reason: "elsewhere",
                        hint: ""),
                    PushFigures.Trouble(
                        environment: "production", bundle: "other", isPaused: true,
                        reason: "another app", hint: ""),
                    PushFigures.Trouble(
                        environment: "production", bundle: "b", isPaused: true,
                        reason: "it refuses the key", hint: "compare key_id"),
                ]
                return WakeSenders(
                    apns: figures, webhook: WebhookFigures(events: [:], failure: "status 500"))
            }
        }
    }

    @Test(
        "a test that is put off says why its sender does not send",
        arguments: [
            (Device.Kind.apns, obstacle),
            (
                .webhook,
                "the receiver of wakes.webhook fails: status 500 (hermesctl devices status)"
            ),
        ])
    func test(kind: Device.Kind, words: String) async throws {
        let broker = Self.broker(kind, WakeTrial(outcome: "later", reason: "no sender"))
        try await TestServer.run(broker, with: Self.paused) { server in
            let response = try server.request("POST", "/v1/clients/p/device/test")
            #expect(
                try response.json(WakeTrial.self) == WakeTrial(outcome: "later", reason: words))
        }
    }

    @Test("a refusal, and a sender that sends, keep the service's word")
    func word() async throws {
        let refused = WakeTrial(outcome: "refused", reason: "BadTopic")
        try await TestServer.run(Self.broker(.apns, refused), with: Self.paused) { server in
            let response = try server.request("POST", "/v1/clients/p/device/test")
            #expect(try response.json(WakeTrial.self) == refused)
        }
        let later = WakeTrial(outcome: "later", reason: "TooManyRequests")
        let sending = TestServer.Changes { $0.wakes = { WakeSenders(apns: PushFigures()) } }
        try await TestServer.run(Self.broker(.apns, later), with: sending) { server in
            let response = try server.request("POST", "/v1/clients/p/device/test")
            #expect(try response.json(WakeTrial.self) == later)
        }
    }

    @Test("a kind of device without a sender")
    func off() async throws {
        let later = WakeTrial(outcome: "later", reason: "no sender")
        try await TestServer.run(Self.broker(.webhook, later)) { server in
            let response = try server.request("POST", "/v1/clients/p/device/test")
            let trial = try response.json(WakeTrial.self)
            #expect(trial.reason == "wakes.webhook is not configured (hermesctl devices status)")
        }
    }

    @Test("an explanation says that sending is paused")
    func explanation() async throws {
        let broker = Self.broker(.apns, WakeTrial(outcome: "later"))
        try await TestServer.run(broker, with: Self.paused) { server in
            let response = try server.request("GET", "/v1/clients/p/explain")
            let sentences = try response.json(ClientExplanation.self).sentences
            #expect(
                sentences.last
                    == "Its device is owed a notification for 2 messages, which goes out later: "
                    + Self.obstacle + ".")
        }
    }
}
