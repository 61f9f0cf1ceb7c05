import BrokerAPI
import Credentials
import Testing

@testable import Webhook

@Suite("Batches of events")
struct WebhookBatchTests {
    @Test("the document has the events in order, and a name by its contents")
    func document() throws {
        let batch = try #require(
            WebhookBatch([
                ReceiptEvent(
                    number: 1, messageID: "m-1", topic: "orders/7", clientID: "phone-7",
                    outcome: .acknowledged, atMs: 1_700_000_000_123),
                ReceiptEvent(
                    number: 2, messageID: "m-2", topic: "orders/8", clientID: "ph\"ö",
                    outcome: .dropped, reason: "queue_full", atMs: 1_700_000_000_124),
            ]))
        let events = #"""
            {"at_ms":1700000000123,"client_id":"phone-7","event":"acknowledged","message_id":"m-1","number":1,"topic":"orders/7"},{"at_ms":1700000000124,"client_id":"ph\"ö","event":"dropped","message_id":"m-2","number":2,"reason":"queue_full","topic":"orders/8"}
            """#
        // By sha256sum, over the events with the commas between them.
        #expect(batch.delivery == "4382ad6d87b9ee738cf184aaccffb1be")
        #expect(
            String(decoding: batch.body, as: UTF8.self)
                == "{\"delivery\":\"\(batch.delivery)\",\"events\":[\(events)]}")
        #expect(batch.count == 2)
        #expect(batch.last == 2)
    }

    @Test("a replaced message has the one that took its place")
    func replaced() throws {
        let batch = try #require(
            WebhookBatch([
                ReceiptEvent(
                    number: 1, messageID: "m-1", topic: "t", clientID: "p", outcome: .dropped,
                    reason: "replaced", replacedBy: "m-2", atMs: 5)
            ]))
        #expect(
            String(decoding: batch.body, as: UTF8.self).contains(
                #"{"at_ms":5,"client_id":"p","event":"dropped","message_id":"m-1","number":1,"reason":"replaced","replaced_by":"m-2","topic":"t"}"#
            ))
    }

    @Test("no events are no batch")
    func none() {
        #expect(WebhookBatch([]) == nil)
    }

    @Test("a batch has at most 256 events")
    func mostEvents() throws {
        let batch = try #require(WebhookBatch((1...300).map { event(UInt64($0)) }))
        #expect(batch.count == 256)
        #expect(batch.last == 256)
    }

    @Test("a batch has at most 1 MiB of events, and one event in any case")
    func mostBytes() throws {
        let long = String(repeating: "t", count: 60_000)
        let batch = try #require(WebhookBatch((1...30).map { event(UInt64($0), topic: long) }))
        #expect(batch.count == 17)
        #expect(batch.body.count <= (1 << 20) + 100)
        let huge = String(repeating: "t", count: 2 << 20)
        let single = try #require(WebhookBatch([event(7, topic: huge), event(8)]))
        #expect(single.count == 1)
        #expect(single.last == 7)
    }

    @Test("a request is signed with its time, and names its batch")
    func request() throws {
        let batch = try #require(WebhookBatch([event(1)]))
        let secret = SigningSecret("0123456789abcdef".utf8)
        let settings = WebhookSettings(url: "https://office.example/", secretFile: "")
        let request = WebhookRequest(
            batch.body, delivery: batch.delivery, settings, secret: secret, seconds: 1_700_000_000)
        let signed = Array("1700000000.".utf8) + batch.body
        #expect(request.url == "https://office.example/")
        #expect(request.body == batch.body)
        #expect(request.header("Content-Type") == "application/json")
        #expect(request.header("Hermes-Delivery") == batch.delivery)
        #expect(
            request.header("Hermes-Signature")
                == "t=1700000000,v1=\(secret.signature(of: signed))")
    }
}

@Suite("Answers of the receiver")
struct WebhookReplyTests {
    @Test(
        "a status is delivered, unavailable for now, or refused",
        arguments: [
            (200, "delivered"), (202, "delivered"), (204, "delivered"), (299, "delivered"),
            (500, "unavailable"), (503, "unavailable"), (408, "unavailable"),
            (425, "unavailable"), (429, "unavailable"), (301, "refused"), (308, "refused"),
            (400, "refused"), (401, "refused"), (404, "refused"), (410, "refused"),
            (413, "refused"),
        ])
    func outcome(status: Int, outcome: String) {
        #expect(WebhookReply(status: status, retryAfter: nil, now: 0).outcome.rawValue == outcome)
    }

    @Test(
        "Retry-After counts as seconds or as a date in each of its forms, other text as none",
        arguments: [
            ("5", 5), ("0", 0), ("120", 120), (nil, nil), ("", nil), ("-5", nil), ("1.5", nil),
            ("99999999999", 1 << 31), ("Wed, 21 Oct 2026 07:28:00 GMT", 90),
            ("Wednesday, 21-Oct-26 07:28:00 GMT", 90), ("Wed Oct 21 07:28:00 2026", 90),
            ("Wed, 21 Oct 2026 07:26:00 GMT", 0), ("Wed, 21 Oct 9026 07:26:00 GMT", 1 << 31),
            ("Wed, 21 Oct 2026", nil), ("2026-10-21T07:28:00Z", nil),
        ] as [(String?, Int?)])
    func retryAfter(text: String?, seconds: Int?) {
        // 2026-10-21T07:26:30Z.
        let reply = WebhookReply(status: 503, retryAfter: text, now: 1_792_567_590)
        #expect(reply.retryAfter == seconds.map { .seconds($0) })
    }

    @Test("a date is the receiver's, whose own clock counts where it tells it")
    func receiversClock() {
        let reply = WebhookReply(
            status: 503, retryAfter: "Wed, 21 Oct 2026 07:28:00 GMT",
            date: "Wed, 21 Oct 2026 07:27:59 GMT", now: 0)
        #expect(reply.retryAfter == .seconds(1))
    }
}

@Suite("Pauses between attempts")
struct RetryPauseTests {
    @Test("they double from a second up to the longest")
    func doubling() {
        var pause = RetryPause(longest: .seconds(300))
        let pauses = (0..<11).map { _ in pause.take(retryAfter: nil, random: 1) }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map { .seconds($0) })
    }

    @Test("half of them is random")
    func jitter() {
        var low = RetryPause(longest: .seconds(300))
        #expect(low.take(retryAfter: nil, random: 0) == .milliseconds(500))
        #expect(low.take(retryAfter: nil, random: 0.5) == .milliseconds(1_500))
    }

    @Test("the receiver may lengthen one, up to the longest, and shortens none")
    func retryAfter() {
        var pause = RetryPause(longest: .seconds(60))
        #expect(pause.take(retryAfter: .seconds(30), random: 1) == .seconds(30))
        #expect(pause.take(retryAfter: .seconds(3_600), random: 1) == .seconds(60))
        #expect(pause.take(retryAfter: .zero, random: 1) == .seconds(4))
    }
}
