import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl devices")
struct DevicesCommandTests {
    private static func status(_ senders: WakeSenders) -> String {
        var figures = BrokerFigures()
        figures.devices = 2
        figures.deviceBytes = 650
        figures.wakesOwed = 1
        figures.wakes = [BrokerFigures.Count("accepted", 7), BrokerFigures.Count("later", 0)]
        // One blank between the columns.
        return DevicesStatusCommand.rendered(WakeStatus(figures, senders), now: 100_000)
            .split(separator: " ").joined(separator: " ")
    }

    @Test("status without any sender says by which keys they are switched on")
    func off() {
        let text = Self.status(WakeSenders())
        #expect(text.contains("Apple off (wakes.apns)"))
        #expect(text.contains("Google off (wakes.fcm)"))
        #expect(text.contains("webhook off (wakes.webhook)"))
        #expect(text.contains("accepted 7"))
    }

    @Test("status of senders that pause and fail says why, and what to do")
    func failing() {
        var apple = PushFigures()
        apple.pause = PushFigures.Pause(reason: "it \u{1B}[31m refuses", hint: "look")
        let text = Self.status(
            WakeSenders(apns: apple, webhook: WebhookFigures(events: [:], failure: "status 500")))
        #expect(text.contains("nothing is sent: it \\u{1B}[31m refuses"))
        #expect(text.contains("what to do look"))
        #expect(text.contains("failing: status 500"))
    }

    @Test("both push services have a section of their own")
    func google() {
        var google = PushFigures()
        google.answers = ["Success": 3]
        let text = Self.status(WakeSenders(fcm: google))
        #expect(text.contains("Apple off (wakes.apns)"))
        #expect(text.contains("Google sending"))
        #expect(text.contains("Google's answers Success 3"))
        #expect(throws: (any Error).self) {
            try DevicesRegisterCommand.parse(["a", "--token", "b", "--fcm"])
        }
        for flags in [["--fcm", "--webhook"], ["--fcm", "--sandbox"]] {
            #expect(throws: (any Error).self) {
                try DevicesRegisterCommand.parse(["a", "--token", "b", "--bundle", "c"] + flags)
            }
        }
    }

    @Test("a wake that is held says until when")
    func held() {
        let device = Device(
            kind: .fcm, token: Array("t".utf8), bundle: "b", environment: .production,
            timeZone: "Europe/Berlin", registeredAtMs: 0)
        var detail = DeviceDetail(clientID: "p", device: device, wake: .held, waiting: 1)
        detail.heldUntilMs = 3_700_000
        let text = DevicesShowCommand.rendered(DeviceModel(detail), now: 100_000)
        #expect(text.contains("held, in 1h"))
        #expect(text.contains("Europe/Berlin"))
    }

    @Test("a list escapes what clients chose")
    func list() {
        let device = Device(
            kind: .webhook, token: Array("0123456789".utf8), bundle: "", environment: .production,
            registeredAtMs: 0)
        let text = DevicesListCommand.rendered(
            [
                DeviceModel(
                    DeviceDetail(
                        clientID: "a\u{7}b", device: device, wake: .setAside, waiting: 0,
                        lastOutcome: "bad_device", lastReason: "BadDeviceToken",
                        lastAnsweredAtMs: 98_000))
            ],
            now: 100_000, width: nil)
        #expect(text.contains("a\\u{7}b"))
        #expect(text.contains("01234567…  set aside"))
        #expect(text.contains("bad device: BadDeviceToken"))
        #expect(text.contains("2s ago"))
    }

    @Test("one device or all are sent to again, never both")
    func release() throws {
        for refused in [
            [], ["phone", "--all"], ["phone", "--sandbox"], ["--bundle", "b"], [""],
            ["--all", "--sandbox", "--production"], ["--all", "--name", "watch"],
            ["phone", "--name", "a/b"],
        ] {
            #expect(throws: (any Error).self) { try DevicesResumeCommand.parse(refused) }
        }
        let one = try DevicesResumeCommand.parse(["ph\u{7}one"]).devices
        #expect(one.text(1, done: "resumed", needless: "no") == "ph\\u{7}one: resumed\n")
        #expect(one.text(0, done: "resumed", needless: "no") == "ph\\u{7}one: no\n")
        let all = try DevicesRetryCommand.parse(["--all", "--bundle", "b", "--sandbox"]).devices
        #expect(all.text(1, done: "resumed", needless: "no") == "1 device resumed\n")
        #expect(all.text(0, done: "resumed", needless: "no") == "0 devices resumed\n")
    }

    @Test("a wake that its sender has is not called sent")
    func withSender() {
        #expect(Wording.wake("sent") == "with sender")
        #expect(Wording.wake("set_aside") == "set aside")
    }
}
