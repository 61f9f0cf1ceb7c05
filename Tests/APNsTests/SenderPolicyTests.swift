import BrokerAPI
import Testing

@testable import APNs

@Suite("Apple's answers and what the sender makes of them")
struct SenderPolicyTests {
    private func answer(_ status: Int, _ reason: String = "", extra: String = "") -> AppleAnswer {
        AppleAnswer(status: status, body: Array(#"{"reason":"\#(reason)"\#(extra)}"#.utf8))
    }

    @Test("each status and reason has an outcome")
    func outcomes() {
        #expect(AppleAnswer(status: 200, body: []).outcome == .accepted)
        #expect(answer(410, "Unregistered", extra: #","timestamp":17"#).outcome == .gone(atMs: 17))
        #expect(answer(410, "ExpiredToken").outcome == .gone(atMs: nil))
        #expect(answer(400, "BadDeviceToken").outcome == .badDevice)
        #expect(answer(400, "DeviceTokenNotForTopic").outcome == .badDevice)
        #expect(answer(400, "BadTopic").outcome == .refused)
        #expect(answer(413, "PayloadTooLarge").outcome == .refused)
        #expect(answer(429, "TooManyRequests").outcome == .later(milliseconds: 60_000))
        #expect(answer(503, "ServiceUnavailable").outcome == .later(milliseconds: 5_000))
        #expect(answer(503, "Shutdown").endsConnection)
        #expect(answer(400, "IdleTimeout").endsConnection)
        #expect(answer(429, "TooManyProviderTokenUpdates").endsConnection)
        #expect(answer(403, "InvalidProviderToken").concern == .credentials)
        #expect(answer(403, "ExpiredProviderToken").concern == .expiredToken)
    }

    @Test("a reason is one short plain word, or it is not believed")
    func reasons() {
        #expect(answer(400, String(repeating: "A", count: 65)).reason == "")
        #expect(answer(400, "a b").word == "status 400")
        #expect(AppleAnswer(status: 500, body: Array("<html>".utf8)).word == "status 500")
        #expect(AppleAnswer(status: 500, body: Array("[1]".utf8)).reason == "")
    }

    @Test("refused credentials pause for a minute, then longer, until new ones are read")
    func credentials() {
        var health = SenderHealth()
        var now: UInt64 = 0
        var lengths: [UInt64] = []
        for _ in 0..<5 {
            health.note(answer(403, "InvalidProviderToken"), at: now)
            let until = health.pause?.until ?? 0
            lengths.append((until - now) / 60_000)
            let isPaused = health.isPaused(at: until - 1)
            let isOver = !health.isPaused(at: until)
            #expect(isPaused && isOver)
            now = until
        }
        #expect(lengths == [1, 2, 4, 8, 10])
        health.note(answer(403, "InvalidProviderToken"), at: now)
        health.forgive()
        let isPaused = health.isPaused(at: now)
        #expect(!isPaused)
    }

    @Test("bad tokens pause when they are 100 in a minute and over 5 % of the answers")
    func badTokens() {
        var health = SenderHealth()
        for number in 0..<1_999 {
            health.note(number % 21 == 0 ? answer(400, "BadDeviceToken") : answer(200), at: 1)
        }
        #expect(health.pause == nil)
        for _ in 0..<10 { health.note(answer(400, "BadDeviceToken"), at: 2) }
        #expect(health.pause?.cause == .badTokens)
        var fewer = SenderHealth()
        for _ in 0..<99 { fewer.note(answer(400, "BadDeviceToken"), at: 1) }
        #expect(fewer.pause == nil)
    }

    @Test("connections grow one a second while requests wait, and back off when none can be made")
    func pool() {
        var pool = EndpointPool(most: 2)
        let asked: [(connections: Int, waiting: Bool, at: UInt64, opens: Bool)] = [
            (0, true, 10_000, true), (0, true, 10_100, false), (1, true, 11_000, true),
            (2, true, 99_000, false), (1, false, 99_000, false),
        ]
        for one in asked {
            let opens = pool.opens(connections: one.connections, waiting: one.waiting, at: one.at)
            #expect(opens == one.opens, "\(one)")
        }
        var pauses: [UInt64] = []
        for _ in 0..<8 {
            pool.failed("refused", random: 1, at: 100_000)
            pauses.append(pool.backoff(at: 100_000) / 1_000)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
        pool.opened()
        #expect(pool.failure == nil)
    }
}
