import BrokerAPI

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
            case "none": nil
            default:
                throw RefusedValue(
                    complaint: "\(quoted(words[0])) is no kind of notification",
                    cure: "Begin the rule with alert, background or none.")
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
            guard kind == .alert || forSilent.contains(parts[0]) else {
                throw RefusedValue(
                    complaint: "\(quoted(word)) in the rule for \(quoted(words[1])) is for alerts",
                    cure: "Begin the rule with alert, or leave it out.")
            }
            try set(String(parts[0]), parts.count == 2 ? String(parts[1]) : nil, of: &rule)
        }
        return rule
    }

    /// What a silent notification may have too.
    private static var forSilent: [Substring] { ["fields", "priority", "expires"] }

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
        case ("mutable", nil): rule.isMutable = true
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
                    "Known are title=KEY, subtitle=KEY, body=KEY, args=FIELD+FIELD, sound=NAME, badge, thread, thread=NAME, category=NAME, level=LEVEL, mutable, priority=NUMBER, expires=TIME and fields=FIELD+FIELD."
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
        guard number != 10 || kind == .alert else {
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
        if rule.isMutable { words.append("mutable") }
        if let priority = rule.priority { words.append("priority=\(priority)") }
        if let seconds = rule.expiresInSeconds {
            let time = ValueFormat<Duration>.duration(.zero...(.seconds(30 * 86_400)))
            words.append("expires=" + time.write(.seconds(seconds)))
        }
        if !rule.fields.isEmpty { words.append("fields=" + rule.fields.joined(separator: "+")) }
        return words.joined(separator: " ")
    }
}
