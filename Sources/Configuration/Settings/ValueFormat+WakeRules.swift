import BrokerAPI
import TimeZones

extension ValueFormat where Value == [WakeRule] {
    /// Rules of pushes, as a YAML list or separated by commas.
    static var wakeRules: Self {
        Self(
            expectation: "rules such as `alert orders/# title=ORDER_TITLE body=ORDER_BODY badge`",
            absent: [],
            read: { (text: String) throws(RefusedValue) -> [WakeRule] in
                var rules: [WakeRule] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    rules.append(try rule(String(part)))
                }
                guard rules.count <= WakeRule.most else {
                    throw RefusedValue(
                        complaint: "there are \(rules.count) rules, and \(WakeRule.most) at most",
                        cure: "Join rules by wildcards.")
                }
                return rules
            },
            write: { $0.map(text).joined(separator: ",") })
    }

    private static func rule(_ text: String) throws(RefusedValue) -> WakeRule {
        let words = text.split(separator: " ").map(String.init)
        guard words.count >= 2 else {
            throw RefusedValue(
                complaint: "\(quoted(text)) is no rule: it needs a kind and a topic filter",
                cure: """
                    Write such as `alert orders/#`. In YAML a # behind a blank begins a comment: put \
                    the rule in quotes, such as - "none #".
                    """)
        }
        let kind: WakeKind? =
            switch words[0] {
            case "alert": .alert
            case "background": .background
            case "liveactivity": .liveActivity
            case "voip": .voip
            case "pushtotalk": .pushToTalk
            case "none": nil
            default:
                throw RefusedValue(
                    complaint: "\(quoted(words[0])) is no kind of notification",
                    cure:
                        "Begin the rule with alert, background, liveactivity, voip, pushtotalk or none."
                )
            }
        let filters = try ValueFormat<[String]>.topicFilters.read(words[1])
        var rule = WakeRule(filter: filters[0], kind: kind)
        var seen: Set<Substring> = []
        for word in words.dropFirst(2) {
            let parts = word.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard seen.insert(parts[0]).inserted else {
                throw RefusedValue(
                    complaint:
                        "the rule for \(quoted(words[1])) has \(quoted(String(parts[0]))) twice",
                    cure: "Give it once.")
            }
            guard mayHave(parts[0], kind) else {
                throw RefusedValue(
                    complaint:
                        "\(quoted(word)) in the rule for \(quoted(words[1])) is not for \(words[0])",
                    cure: cure(parts[0], kind))
            }
            try set(String(parts[0]), parts.count == 2 ? String(parts[1]) : nil, of: &rule)
        }
        guard kind != .liveActivity || !rule.fields.isEmpty else {
            throw RefusedValue(
                complaint: "the rule for \(quoted(words[1])) gives a Live Activity no content",
                cure: "Name the fields of its content, such as fields=status+minutes.")
        }
        return rule
    }

    /// Parts that a notification may have which is no alert.
    private static func mayHave(_ part: Substring, _ kind: WakeKind?) -> Bool {
        switch kind {
        case .alert: part != "event"
        case .background, .badge, nil: ["fields", "priority", "expires"].contains(part)
        case .liveActivity: ["fields", "priority", "expires", "event"].contains(part)
        case .voip, .pushToTalk: ["fields", "expires"].contains(part)
        }
    }

    private static func cure(_ part: Substring, _ kind: WakeKind?) -> String {
        switch (part, kind) {
        case ("event", _): "Begin the rule with liveactivity, or leave it out."
        case ("priority", _): "Leave it out: Apple takes calls and talks with priority 10 only."
        default: "Begin the rule with alert, or leave it out."
        }
    }

    private static func set(
        _ name: String, _ value: String?, of rule: inout WakeRule
    ) throws(RefusedValue) {
        switch (name, value) {
        case ("title", let text?): rule.titleKey = try key(text, name)
        case ("body", let text?): rule.bodyKey = try key(text, name)
        case ("sound", let sound?): rule.sound = try word(sound, name)
        case ("badge", nil): rule.badge = true
        case ("subtitle", let text?): rule.subtitleKey = try key(text, name)
        case ("category", let category?): rule.category = try word(category, name)
        case ("thread", nil): rule.thread = .topic
        case ("thread", let thread?): rule.thread = .name(try word(thread, name))
        case ("channel", let channel?): rule.channel = try word(channel, name)
        case ("mutable", nil): rule.isMutable = true
        case ("quiet", let text?): rule.quiet = try quiet(text)
        case ("event", "end"?): rule.endsActivity = true
        case ("event", "update"?): rule.endsActivity = false
        case ("uncapped", nil): rule.isUncapped = true
        case ("level", let word?): rule.level = try level(word)
        case ("priority", let word?): rule.priority = try priority(word, rule.kind)
        case ("expires", let time?):
            let format = ValueFormat<Duration>.duration(.zero...(.seconds(30 * 86_400)))
            rule.expiresInSeconds = try format.read(time).components.seconds
        case ("fields", let names?): rule.fields = try list(names, name)
        case ("args", let names?): rule.arguments = try list(names, name)
        default:
            throw RefusedValue(
                complaint: "\(quoted(name + (value.map { "=" + $0 } ?? ""))) is no part of a rule",
                cure:
                    "Known are title=KEY, subtitle=KEY, body=KEY, args=FIELD+FIELD, sound=NAME, badge, thread, thread=NAME, category=NAME, level=LEVEL, channel=NAME, mutable, quiet=HOURS, uncapped, event=update or end, priority=NUMBER, expires=TIME and fields=FIELD+FIELD."
            )
        }
    }

    private static func list(_ names: String, _ name: String) throws(RefusedValue) -> [String] {
        var list: [String] = []
        for field in names.split(separator: "+", omittingEmptySubsequences: false) {
            list.append(try word(String(field), name))
        }
        guard list.count <= 16 else {
            throw RefusedValue(
                complaint: "a rule has \(list.count) \(name), and 16 at most",
                cure: "A notification is small: name those that its text needs.")
        }
        return list
    }

    /// `off`, or hours, `drop`, or both with a + between them.
    private static func quiet(_ text: String) throws(RefusedValue) -> WakeRule.Quiet {
        if text == "off" { return .off }
        var (hours, drops): (QuietHours?, Bool) = (nil, false)
        for part in text.split(separator: "+", omittingEmptySubsequences: false) {
            if part == "drop", !drops {
                drops = true
            } else if hours == nil, let read = QuietHours(part) {
                hours = read
            } else {
                throw RefusedValue(
                    complaint: "quiet=\(quoted(text)) are no quiet hours",
                    cure:
                        "Write quiet=22:00-07:00, quiet=drop, quiet=22:00-07:00+drop or quiet=off.")
            }
        }
        return .hours(hours, drops: drops)
    }

    private static func level(_ word: String) throws(RefusedValue) -> WakeRule.Level {
        guard let level = WakeRule.Level(rawValue: word) else {
            throw RefusedValue(
                complaint: "\(quoted(word)) is no interruption level",
                cure: "Write passive, active, time-sensitive or critical.")
        }
        return level
    }

    private static func priority(
        _ word: String, _ kind: WakeKind?
    ) throws(RefusedValue) -> UInt8 {
        guard let number = UInt8(word), [1, 5, 10].contains(number) else {
            throw RefusedValue(
                complaint: "priority=\(quoted(word)) is none of Apple's",
                cure: "Write 10 (at once), 5 (when it suits the phone) or 1 (saves its battery).")
        }
        guard number != 1 || kind != .liveActivity else {
            throw RefusedValue(
                complaint: "priority=1 is none of a Live Activity",
                cure: "Write priority=10 (at once) or priority=5 (costs nothing of its budget).")
        }
        guard number != 10 || kind == .alert || kind == .liveActivity else {
            throw RefusedValue(
                complaint: "Apple refuses priority 10 for a silent notification",
                cure: "Write priority=5 or priority=1, or begin the rule with alert.")
        }
        return number
    }

    /// The key of a text, which may name fields in braces.
    private static func key(_ text: String, _ name: String) throws(RefusedValue) -> String {
        let isWhole = text.split(separator: "{", omittingEmptySubsequences: false).enumerated()
            .allSatisfy { place, part in
                let ends = part.utf8.count { $0 == 0x7D }
                return place == 0 ? ends == 0 : ends == 1 && part.utf8.first != 0x7D
            }
        guard isWhole else {
            throw RefusedValue(
                complaint: "\(name)=\(quoted(text)) has braces that name no field",
                cure: "Write such as ORDER_{status}.")
        }
        return try word(text, name)
    }

    /// A key or a name, which stands in JSON as it is.
    private static func word(_ text: String, _ name: String) throws(RefusedValue) -> String {
        let isPlain = text.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
        guard (1...64).contains(text.utf8.count), isPlain else {
            throw RefusedValue(
                complaint: "\(name)=\(quoted(text)) is not 1 to 64 plain letters, digits and signs",
                cure: "Give the name as the app has it.")
        }
        return text
    }

    private static func text(_ rule: WakeRule) -> String {
        var words = [
            rule.kind?.name ?? "none", rule.filter,
        ]
        if let key = rule.titleKey { words.append("title=\(key)") }
        if let key = rule.subtitleKey { words.append("subtitle=\(key)") }
        if let key = rule.bodyKey { words.append("body=\(key)") }
        if !rule.arguments.isEmpty {
            words.append("args=" + rule.arguments.joined(separator: "+"))
        }
        if let sound = rule.sound { words.append("sound=\(sound)") }
        if rule.badge { words.append("badge") }
        switch rule.thread {
        case .topic?: words.append("thread")
        case .name(let name)?: words.append("thread=\(name)")
        case nil: break
        }
        if let category = rule.category { words.append("category=\(category)") }
        if let level = rule.level { words.append("level=\(level.rawValue)") }
        if let channel = rule.channel { words.append("channel=\(channel)") }
        if rule.isMutable { words.append("mutable") }
        switch rule.quiet {
        case .usual: break
        case .off: words.append("quiet=off")
        case .hours(let hours, let drops):
            let parts = [hours?.text, drops ? "drop" : nil].compactMap { $0 }
            words.append("quiet=" + parts.joined(separator: "+"))
        }
        if rule.isUncapped { words.append("uncapped") }
        if rule.endsActivity { words.append("event=end") }
        if let priority = rule.priority { words.append("priority=\(priority)") }
        if let seconds = rule.expiresInSeconds {
            let time = ValueFormat<Duration>.duration(.zero...(.seconds(30 * 86_400)))
            words.append("expires=" + time.write(.seconds(seconds)))
        }
        if !rule.fields.isEmpty { words.append("fields=" + rule.fields.joined(separator: "+")) }
        return words.joined(separator: " ")
    }
}
