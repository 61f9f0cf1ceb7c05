import BrokerAPI
import RequestText

/// The JSON of a message for Firebase Cloud Messaging ("REST Resource: projects.messages", Firebase
/// documentation), made from the same rules as Apple's notification.
///
/// Keys of texts are names of string resources of the app. Of the messages themselves it holds what the
/// rule includes by name.
package enum GoogleMessage {
    /// The most bytes that are sent; Google takes 4,096 of notification and data.
    package static let mostBytes = 4_096
    /// Google keeps messages of four collapse keys for a device that is away, no more.
    private static let collapseKeys: UInt64 = 4
    /// The longest time for which Google keeps a message (28 days).
    private static let mostSeconds: Int64 = 2_419_200

    /// Composes a message at a time (UNIX seconds). Fields are left out when all together would be too
    /// long.
    package static func bytes(of wake: Wake, at now: Int64) -> [UInt8] {
        let payload = PayloadFields(wake)
        let names = wake.rule?.arguments ?? []
        let whole = compose(
            wake, payload, payload.values(wake.rule?.fields ?? []), payload.words(names), now)
        guard whole.count > mostBytes else { return whole }
        return compose(wake, payload, [], names.map { _ in "" }, now)
    }

    private static func compose(
        _ wake: Wake, _ payload: PayloadFields, _ fields: [(name: String, value: JSONValue)],
        _ words: [String], _ now: Int64
    ) -> [UInt8] {
        var json = JSONBytes()
        json.text("{\"message\":{\"token\":")
        json.string(utf8: wake.device.token)
        json.text(",\"data\":{\"hermes_kind\":")
        json.string(wake.kind.name)
        json.text(",\"hermes_count\":\"\(wake.waiting)\"")
        if wake.kind != .badge {
            member("hermes_topic", NotificationPayload.topic(of: wake), &json)
        }
        if !fields.isEmpty {
            var object = JSONBytes()
            object.object(fields)
            json.text(",\"hermes_fields\":")
            json.string(utf8: object.bytes)
        }
        json.text("},\"android\":{")
        switch wake.kind {
        case .alert, .background, .badge:
            json.text("\"collapse_key\":\"\(collapseKey(wake))\",")
        case .liveActivity, .voip, .pushToTalk: break
        }
        json.text("\"ttl\":\"\(lifetime(of: wake, at: now))s\"")
        let priority = wake.rule?.priority ?? usualPriority(wake.kind)
        json.text(",\"priority\":\"\(priority == 10 ? "HIGH" : "NORMAL")\"")
        if wake.kind == .alert { notification(wake, payload, words, &json) }
        json.text("}}}")
        return json.bytes
    }

    /// Calls are data for which the app is started at once.
    private static func usualPriority(_ kind: WakeKind) -> UInt8 {
        switch kind {
        case .alert, .liveActivity, .voip, .pushToTalk: 10
        case .background, .badge: 5
        }
    }

    private static func lifetime(of wake: Wake, at now: Int64) -> Int64 {
        guard !wake.isTriedOnce else { return 0 }
        return min(max(wake.expiresAt, now), now + mostSeconds) - now
    }

    /// Topics share the four keys. Those with one key replace each other while the phone is away, and
    /// the one that is kept has the number of all that wait.
    private static func collapseKey(_ wake: Wake) -> String {
        let digest = wake.collapseID.utf8.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
        return "hermes-\(digest % collapseKeys)"
    }

    private static func notification(
        _ wake: Wake, _ payload: PayloadFields, _ words: [String], _ json: inout JSONBytes
    ) {
        let rule = wake.rule
        json.text(",\"notification\":{\"tag\":")
        json.string(wake.collapseID)
        if let key = payload.key(rule?.titleKey) {
            member("title_loc_key", key, &json)
            arguments("title_loc_args", wake, words, &json)
        }
        member(
            "body_loc_key", payload.key(rule?.bodyKey) ?? NotificationPayload.usualBodyKey, &json)
        arguments("body_loc_args", wake, words, &json)
        if let sound = rule?.sound { member("sound", sound, &json) }
        if rule?.badge == true { json.text(",\"notification_count\":\(wake.waiting)") }
        if let category = rule?.category { member("click_action", category, &json) }
        if let channel = rule?.channel { member("channel_id", channel, &json) }
        switch rule?.level {
        case .passive?: member("notification_priority", "PRIORITY_LOW", &json)
        case .timeSensitive?: member("notification_priority", "PRIORITY_HIGH", &json)
        case .critical?: member("notification_priority", "PRIORITY_MAX", &json)
        case .active?, nil: break
        }
        json.text("}")
    }

    /// What texts of the app may use, as in Apple's notification.
    private static func arguments(
        _ name: String, _ wake: Wake, _ words: [String], _ json: inout JSONBytes
    ) {
        json.text(",\"\(name)\":[\"\(wake.waiting)\",")
        json.string(NotificationPayload.topic(of: wake))
        for word in words {
            json.text(",")
            json.string(word)
        }
        json.text("]")
    }

    private static func member(_ name: String, _ value: String, _ json: inout JSONBytes) {
        json.text(",\"\(name)\":")
        json.string(value)
    }
}
