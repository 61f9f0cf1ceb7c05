import BrokerAPI
import RequestText
import Testing

@testable import Wakes

@Suite("The JSON of a message for Firebase Cloud Messaging")
struct GoogleMessageTests {
    private func wake(
        kind: WakeKind = .alert, rule: WakeRule? = nil, payload: String = "",
        topic: String = "orders/1"
    ) -> Wake {
        Wake(
            handOut: HandOut(device: 1, number: 1), clientID: "c",
            device: Device(
                kind: .fcm, token: Array("t\"1".utf8), bundle: "b", environment: .production,
                registeredAtMs: 0),
            kind: kind, rule: rule, topic: topic, payload: Array(payload.utf8), waiting: 3,
            collapseID: "x", notificationID: (1, 2), expiresAt: 1_600)
    }

    private func text(_ wake: Wake, at now: Int64 = 1_000) -> String {
        String(decoding: GoogleMessage.bytes(of: wake, at: now), as: UTF8.self)
    }

    @Test("each part of a rule has its field")
    func parts() {
        var rule = WakeRule(
            filter: "#", kind: .alert, titleKey: "T", bodyKey: "B_{status}", sound: "default",
            badge: true, fields: ["status", "card"])
        rule.arguments = ["sum"]
        rule.category = "OPEN"
        rule.channel = "orders"
        rule.level = .passive
        rule.priority = 5
        #expect(
            text(wake(rule: rule, payload: #"{"status":"paid","sum":7}"#))
                == #"{"message":{"token":"t\"1","data":{"hermes_kind":"alert","hermes_count":"3","hermes_topic":"orders/1","hermes_fields":"{\"status\":\"paid\"}"},"android":{"collapse_key":"hermes-0","ttl":"600s","priority":"NORMAL","notification":{"tag":"x","title_loc_key":"T","title_loc_args":["3","orders/1","7"],"body_loc_key":"B_paid","body_loc_args":["3","orders/1","7"],"sound":"default","notification_count":3,"click_action":"OPEN","channel_id":"orders","notification_priority":"PRIORITY_LOW"}}}}"#
        )
    }

    @Test("silent ones and cleared badges are data alone, an alert without a rule says the usual")
    func kinds() {
        #expect(
            text(wake(kind: .background))
                == #"{"message":{"token":"t\"1","data":{"hermes_kind":"background","hermes_count":"3","hermes_topic":"orders/1"},"android":{"collapse_key":"hermes-0","ttl":"600s","priority":"NORMAL"}}}"#
        )
        var badge = wake(kind: .badge)
        badge.waiting = 0
        #expect(
            text(badge)
                == #"{"message":{"token":"t\"1","data":{"hermes_kind":"badge","hermes_count":"0"},"android":{"collapse_key":"hermes-0","ttl":"600s","priority":"NORMAL"}}}"#
        )
        #expect(
            text(wake()).contains(
                #""priority":"HIGH","notification":{"tag":"x","body_loc_key":"HERMES_MESSAGES""#))
    }

    @Test("a time is never negative nor above Google's, and 0 is one attempt")
    func lifetimes() {
        #expect(text(wake(), at: 2_000).contains(#""ttl":"0s""#))
        var long = wake()
        long.expiresAt = .max
        #expect(text(long, at: -5).contains(#""ttl":"2419200s""#))
        var rule = WakeRule(filter: "#", kind: .alert)
        rule.expiresInSeconds = 0
        #expect(text(wake(rule: rule)).contains(#""ttl":"0s""#))
    }

    @Test("at most four collapse keys, and never more than Google's bytes")
    func bounds() {
        var keys: Set<String> = []
        for number in 0..<200 {
            var one = wake()
            one.collapseID = String(number, radix: 16)
            let text = text(one)
            keys.insert(String(text.split(separator: "collapse_key").last?.prefix(13) ?? ""))
        }
        #expect(keys.count == 4)
        var rule = WakeRule(filter: "#", kind: .alert, fields: ["a"])
        rule.arguments = ["b"]
        let fits = #"{"a":"\#(String(repeating: "\u{7}", count: 9))","b":"c"}"#
        #expect(text(wake(rule: rule, payload: #"{"a":"d","b":"c"}"#)).contains("hermes_fields"))
        #expect(!text(wake(rule: rule, payload: fits)).contains("hermes_fields"), "no JSON")
        let large = #"{"a":"\#(String(repeating: "x", count: 4_000))","b":"c"}"#
        let bytes = GoogleMessage.bytes(of: wake(rule: rule, payload: large), at: 0)
        #expect(bytes.count <= GoogleMessage.mostBytes)
        #expect(!String(decoding: bytes, as: UTF8.self).contains("hermes_fields"))
        let deep = GoogleMessage.bytes(
            of: wake(topic: String(repeating: "\u{1}", count: 65_535)), at: 0)
        #expect(deep.count <= GoogleMessage.mostBytes)
    }
}
