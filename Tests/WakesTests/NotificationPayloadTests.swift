import BrokerAPI
import HermesMessages
import RequestText
import Testing

@testable import Wakes

@Suite("The JSON of a notification")
struct NotificationPayloadTests {
    private func wake(
        _ topic: String = "orders/1", kind: WakeKind = .alert, rule: WakeRule? = nil,
        payload: String = ""
    ) -> Wake {
        Wake(
            handOut: HandOut(device: 1, number: 1), clientID: "c",
            device: Device(
                kind: .apns, token: [1], bundle: "b", environment: .production, registeredAtMs: 0),
            kind: kind, rule: rule, topic: topic, payload: Array(payload.utf8), waiting: 3,
            collapseID: "x", notificationID: (1, 2), expiresAt: 9)
    }

    private func text(_ wake: Wake) -> String {
        String(decoding: NotificationPayload.bytes(of: wake, at: 17), as: UTF8.self)
    }

    @Test("an alert has the keys of its rule, the number and the topic")
    func alert() {
        let rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "T", bodyKey: "B", sound: "default", badge: true,
            fields: ["status", "missing", "list"])
        #expect(
            text(wake(rule: rule, payload: #"{"status":"paid","list":[1],"card":"4711"}"#))
                == #"{"aps":{"alert":{"title-loc-key":"T","loc-key":"B","loc-args":["3","orders/1"]},"sound":"default","badge":3},"hermes":{"topic":"orders/1","count":3,"fields":{"status":"paid"}}}"#
        )
        #expect(
            text(wake())
                == #"{"aps":{"alert":{"loc-key":"HERMES_MESSAGES","loc-args":["3","orders/1"]}},"hermes":{"topic":"orders/1","count":3}}"#
        )
        #expect(
            text(wake(kind: .background))
                == #"{"aps":{"content-available":1},"hermes":{"topic":"orders/1","count":3}}"#)
    }

    @Test("calls and talks have no text, and a Live Activity has its content alone")
    func forms() {
        var rule = WakeRule(filter: "#", kind: .liveActivity, fields: ["status", "missing"])
        let payload = #"{"status":"paid","card":"4711"}"#
        #expect(
            text(wake(kind: .liveActivity, rule: rule, payload: payload))
                == #"{"aps":{"timestamp":17,"event":"update","content-state":{"status":"paid"}}}"#)
        rule.endsActivity = true
        #expect(
            text(wake(kind: .liveActivity, rule: rule, payload: payload)).contains(
                #""event":"end""#))
        for kind in [WakeKind.voip, .pushToTalk] {
            #expect(
                text(wake(kind: kind, rule: rule, payload: payload))
                    == #"{"aps":{},"hermes":{"topic":"orders/1","count":3,"fields":{"status":"paid"}}}"#
            )
        }
        #expect(!wake(kind: .alert).isTriedOnce)
        #expect(wake(kind: .voip, rule: rule).isTriedOnce)
        rule.expiresInSeconds = 5
        #expect(!wake(kind: .voip, rule: rule).isTriedOnce)
    }

    @Test("a badge goes without a word")
    func badge() { #expect(text(wake(kind: .badge)) == #"{"aps":{"badge":0}}"#) }

    @Test("an order's status gives the texts their arguments and their keys")
    func orderStatus() throws {
        var rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "ORDER", bodyKey: "ORDER_{status}",
            fields: ["sales_id", "updatedAtMs"])
        rule.arguments = ["orderId", "status", "details.bank", "missing"]
        let update = OrderStatusUpdate(
            orderID: "4711", salesID: "s1", status: .approved, reason: "Grüße", updatedAtMs: 12,
            details: ["bank": "B & C"])
        let envelope = Envelope(
            messageID: "m", topic: "orders/s1/4711", channel: "orders/s1", publishedAtMs: 1,
            contentType: OrderStatusUpdate.contentType, payload: try update.encoded())
        var one = wake("orders/s1/4711", rule: rule)
        // The sequence number follows with the commit.
        one.payload = try envelope.encoded() + [Envelope.sequenceTag, 1]
        let arguments = #"["3","orders/s1/4711","4711","APPROVED","B & C",""]"#
        #expect(
            text(one)
                == #"{"aps":{"alert":{"title-loc-key":"ORDER","title-loc-args":\#(arguments),"loc-key":"ORDER_APPROVED","loc-args":\#(arguments)}},"hermes":{"topic":"orders/s1/4711","count":3,"fields":{"sales_id":"s1","updatedAtMs":12}}}"#
        )
        for count in one.payload.indices {
            var cut = one
            cut.payload = Array(one.payload[..<count])
            #expect(text(cut).hasPrefix(#"{"aps":{"alert":{"title-loc-key":"ORDER""#), "\(count)")
        }
    }

    @Test(
        "a key whose field is missing, or is no part of a key, is left out",
        arguments: [
            (#"{"status":"paid-1.x_"}"#, "A_paid-1.x__Z", "T_paid-1.x_"),
            (#"{"status":7}"#, "A_7_Z", "T_7"),
            (#"{"status":"a b"}"#, "HERMES_MESSAGES", nil),
            (#"{"status":""}"#, "HERMES_MESSAGES", nil), ("{}", "HERMES_MESSAGES", nil),
            ("no JSON", "HERMES_MESSAGES", nil),
        ])
    func keys(payload: String, body: String, title: String?) {
        let rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "T_{status}", bodyKey: "A_{status}_Z")
        let title = title.map { #""title-loc-key":"\#($0)","# } ?? ""
        #expect(
            text(wake(rule: rule, payload: payload)).hasPrefix(
                #"{"aps":{"alert":{\#(title)"loc-key":"\#(body)","loc-args""#))
    }

    @Test("a rule gives the texts their arguments, and the notification its place and its weight")
    func details() {
        var rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "T", bodyKey: "ORDER_STATUS", badge: true)
        rule.subtitleKey = "S"
        rule.arguments = ["order", "status", "paid", "missing"]
        rule.thread = .topic
        rule.category = "ORDER"
        rule.level = .timeSensitive
        rule.isMutable = true
        let arguments = #"["3","orders/1","4711","approved","true",""]"#
        let payload = #"{"status":"approved","order":4711,"paid":true,"card":"x"}"#
        #expect(
            text(wake(rule: rule, payload: payload))
                == #"{"aps":{"alert":{"title-loc-key":"T","title-loc-args":\#(arguments),"subtitle-loc-key":"S","subtitle-loc-args":\#(arguments),"loc-key":"ORDER_STATUS","loc-args":\#(arguments)},"badge":3,"thread-id":"orders/1","category":"ORDER","interruption-level":"time-sensitive","mutable-content":1},"hermes":{"topic":"orders/1","count":3}}"#
        )
        rule.thread = .name("all")
        rule.arguments = ["big"]
        let big = #"{"big":"\#(String(repeating: "x", count: 4_000))"}"#
        // What does not fit keeps its place, so that the text is not mixed up.
        let cut = text(wake(rule: rule, payload: big))
        #expect(cut.contains(#""loc-args":["3","orders/1",""]"#))
        #expect(cut.contains(#""thread-id":"all""#))
    }

    @Test("hostile topics and payloads give JSON of at most 4,096 bytes")
    func hostile() throws {
        var rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "T", bodyKey: "B", fields: ["a"])
        rule.subtitleKey = "S"
        rule.arguments = ["a", "b"]
        rule.thread = .topic
        let topics = [
            "\"}", "\\", "\u{1}\u{1F}", String(repeating: "ä", count: 30_000),
            String(repeating: "\u{1}", count: 512), "a\u{2028}b", "",
        ]
        let payloads = [
            "", "{", "[]", #"{"a":"\#(String(repeating: "x", count: 4_000))"}"#, #"{"a":1e999}"#,
            #"{"a":"\u0000\""}"#,
        ]
        for topic in topics {
            for payload in payloads {
                let bytes = NotificationPayload.bytes(
                    of: wake(topic, rule: rule, payload: payload), at: 17)
                #expect(bytes.count <= NotificationPayload.mostBytes)
                guard case .object = try JSONParser.parse(bytes) else {
                    Issue.record("no object")
                    continue
                }
            }
        }
    }
}
