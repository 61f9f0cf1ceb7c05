import BrokerAPI
import RequestText

/// The JSON of a notification ("Generating a remote notification", Apple developer documentation).
///
/// It names texts of the app by their keys and says how many messages wait on which topic; of the
/// messages themselves it holds what the rule includes by name, and nothing else.
package enum NotificationPayload {
    /// The most bytes that Apple takes.
    package static let mostBytes = 4_096
    /// The most bytes of a topic as it stands in JSON.
    private static let mostTopicBytes = 512
    /// The body's text of an alert whose rule names none.
    package static let usualBodyKey = "HERMES_MESSAGES"

    /// Composes a notification. Fields of the message are left out when all together would be too
    /// long.
    package static func bytes(of wake: Wake) -> [UInt8] {
        let fields = wake.includedFields
        let whole = compose(wake, fields)
        return whole.count <= mostBytes ? whole : compose(wake, [])
    }

    private static func compose(_ wake: Wake, _ fields: [(String, JSONValue)]) -> [UInt8] {
        var json = JSONBytes()
        json.text("{\"aps\":{")
        switch wake.kind {
        case .background: json.text("\"content-available\":1")
        case .alert: alert(wake, &json)
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

    private static func alert(_ wake: Wake, _ json: inout JSONBytes) {
        json.text("\"alert\":{")
        if let key = wake.rule?.titleKey {
            json.text("\"title-loc-key\":")
            json.string(key)
            json.text(",")
        }
        json.text("\"loc-key\":")
        json.string(wake.rule?.bodyKey ?? usualBodyKey)
        json.text(",\"loc-args\":[\"\(wake.waiting)\",")
        json.string(topic(of: wake))
        json.text("]}")
        if let sound = wake.rule?.sound {
            json.text(",\"sound\":")
            json.string(sound)
        }
        if wake.rule?.badge == true { json.text(",\"badge\":\(wake.waiting)") }
    }

    /// The topic, cut to whole characters.
    private static func topic(of wake: Wake) -> String {
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
