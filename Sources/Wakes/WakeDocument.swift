import BrokerAPI
import RequestText

/// The JSON of a wake for the operator's webhook (docs/wakes.md).
enum WakeDocument {
    static func bytes(of wake: Wake) -> [UInt8] {
        let payload = PayloadFields(wake)
        var json = JSONBytes()
        json.text("{\"id\":")
        json.string(wake.notificationName)
        member("client_id", wake.clientID, &json)
        member("token", String(decoding: wake.device.token, as: UTF8.self), &json)
        if !wake.device.bundle.isEmpty { member("bundle", wake.device.bundle, &json) }
        if let user = wake.device.userName { member("user_name", user, &json) }
        member("kind", wake.kind.name, &json)
        if wake.kind != .badge { member("topic", wake.topic, &json) }
        json.text(",\"count\":\(wake.waiting),\"expires_at\":\(wake.expiresAt)")
        member("collapse_id", wake.collapseID, &json)
        if wake.kind == .badge { json.text(",\"badge\":0") }
        if let rule = wake.rule, wake.kind == .alert {
            if let key = payload.key(rule.titleKey) { member("title", key, &json) }
            if let key = payload.key(rule.subtitleKey) { member("subtitle", key, &json) }
            if let key = payload.key(rule.bodyKey) { member("body", key, &json) }
            if !rule.arguments.isEmpty {
                json.text(",\"args\":[")
                for (place, word) in payload.words(rule.arguments).enumerated() {
                    if place > 0 { json.text(",") }
                    json.string(word)
                }
                json.text("]")
            }
            if let sound = rule.sound { member("sound", sound, &json) }
            if rule.badge { json.text(",\"badge\":\(wake.waiting)") }
            switch rule.thread {
            case .topic?: member("thread", wake.topic, &json)
            case .name(let name)?: member("thread", name, &json)
            case nil: break
            }
            if let category = rule.category { member("category", category, &json) }
            if let level = rule.level { member("level", level.rawValue, &json) }
        }
        if let priority = wake.rule?.priority { json.text(",\"priority\":\(priority)") }
        let fields = payload.values(wake.rule?.fields ?? [])
        if !fields.isEmpty {
            json.text(",\"fields\":")
            json.object(fields)
        }
        json.text("}")
        return json.bytes
    }

    private static func member(_ name: String, _ value: String, _ json: inout JSONBytes) {
        json.text(",\"\(name)\":")
        json.string(value)
    }
}
