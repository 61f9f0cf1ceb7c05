import BrokerAPI
import RequestText

/// The JSON of a notification ("Generating a remote notification", Apple developer documentation).
///
/// It names texts of the app by their keys and says how many messages wait on which topic; of the
/// messages themselves it holds what the rule includes by name, and nothing else.
package enum NotificationPayload {
    /// The most bytes that Apple takes, also of a call.
    package static let mostBytes = 4_096
    package static let mostCallBytes = 5_120
    /// The most bytes of a topic as it stands in JSON.
    private static let mostTopicBytes = 512
    /// The body's text of an alert whose rule names none.
    package static let usualBodyKey = "HERMES_MESSAGES"

    /// Composes a notification at a time (UNIX seconds). Fields of the message are left out when all together would be too
    /// long.
    package static func bytes(of wake: Wake, at now: Int64) -> [UInt8] {
        let payload = PayloadFields(wake)
        let fields = payload.values(wake.rule?.fields ?? [])
        let names = wake.rule?.arguments ?? []
        let keys = Keys(wake.rule, payload)
        let whole = compose(wake, keys, fields, payload.words(names), now)
        guard whole.count > (wake.kind == .voip ? mostCallBytes : mostBytes) else { return whole }
        return compose(wake, keys, [], names.map { _ in "" }, now)
    }

    /// Keys of the texts of an alert.
    private struct Keys {
        let title: String?
        let subtitle: String?
        let body: String

        init(_ rule: WakeRule?, _ payload: PayloadFields) {
            title = payload.key(rule?.titleKey)
            subtitle = payload.key(rule?.subtitleKey)
            body = payload.key(rule?.bodyKey) ?? usualBodyKey
        }
    }

    private static func compose(
        _ wake: Wake, _ keys: Keys, _ fields: [(name: String, value: JSONValue)],
        _ words: [String], _ now: Int64
    ) -> [UInt8] {
        var json = JSONBytes()
        json.text("{\"aps\":{")
        switch wake.kind {
        case .background: json.text("\"content-available\":1")
        case .alert: alert(wake, keys, words, &json)
        case .badge:
            json.text("\"badge\":0}}")
            return json.bytes
        case .liveActivity:
            // ActivityKit decodes the content as the app declares it.
            json.text("\"timestamp\":\(now),\"event\":")
            json.string(wake.rule?.endsActivity == true ? "end" : "update")
            json.text(",\"content-state\":")
            json.object(fields)
            json.text("}}")
            return json.bytes
        case .voip, .pushToTalk: break
        }
        json.text("},\"hermes\":{\"topic\":")
        json.string(topic(of: wake))
        json.text(",\"count\":\(wake.waiting)")
        if !fields.isEmpty {
            json.text(",\"fields\":")
            json.object(fields)
        }
        json.text("}}")
        return json.bytes
    }

    private static func alert(
        _ wake: Wake, _ keys: Keys, _ words: [String], _ json: inout JSONBytes
    ) {
        let rule = wake.rule
        json.text("\"alert\":{")
        for (key, name) in [(keys.title, "title-loc"), (keys.subtitle, "subtitle-loc")] {
            guard let key else { continue }
            json.text("\"\(name)-key\":")
            json.string(key)
            json.text(",")
            guard !words.isEmpty else { continue }
            json.text("\"\(name)-args\":")
            arguments(wake, words, &json)
            json.text(",")
        }
        json.text("\"loc-key\":")
        json.string(keys.body)
        json.text(",\"loc-args\":")
        arguments(wake, words, &json)
        json.text("}")
        member("sound", rule?.sound, &json)
        if rule?.badge == true { json.text(",\"badge\":\(wake.waiting)") }
        switch rule?.thread {
        case .topic?: member("thread-id", topic(of: wake), &json)
        case .name(let name)?: member("thread-id", name, &json)
        case nil: break
        }
        member("category", rule?.category, &json)
        member("interruption-level", rule?.level?.rawValue, &json)
        if rule?.isMutable == true { json.text(",\"mutable-content\":1") }
    }

    private static func member(_ name: String, _ value: String?, _ json: inout JSONBytes) {
        guard let value else { return }
        json.text(",\"\(name)\":")
        json.string(value)
    }

    /// What texts of the app may use: the number of messages, the topic, and the fields that the rule
    /// names, in this order.
    private static func arguments(_ wake: Wake, _ words: [String], _ json: inout JSONBytes) {
        json.text("[\"\(wake.waiting)\",")
        json.string(topic(of: wake))
        for word in words {
            json.text(",")
            json.string(word)
        }
        json.text("]")
    }

    /// The topic, cut to whole characters.
    static func topic(of wake: Wake) -> String {
        // No character takes more than six bytes.
        guard wake.topic.utf8.count > mostTopicBytes / 6 else { return wake.topic }
        var text = ""
        var count = 0
        for scalar in wake.topic.unicodeScalars {
            switch scalar {
            case "\u{0}"..."\u{1F}", "\u{7F}": count += 6
            case "\"", "\\": count += 2
            default: count += UTF8.width(scalar)
            }
            guard count <= mostTopicBytes else { break }
            text.unicodeScalars.append(scalar)
        }
        return text
    }
}
