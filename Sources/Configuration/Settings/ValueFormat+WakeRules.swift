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
            guard kind == .alert || parts[0] == "fields" else {
                throw RefusedValue(
                    complaint: "\(quoted(word)) in the rule for \(quoted(words[1])) is for alerts",
                    cure: "Begin the rule with alert, or leave it out.")
            }
            try set(String(parts[0]), parts.count == 2 ? String(parts[1]) : nil, of: &rule)
        }
        return rule
    }

    private static func set(
        _ name: String, _ value: String?, of rule: inout WakeRule
    ) throws(RefusedValue) {
        switch (name, value) {
        case ("title", let key?): rule.titleKey = try word(key, name)
        case ("body", let key?): rule.bodyKey = try word(key, name)
        case ("sound", let sound?): rule.sound = try word(sound, name)
        case ("badge", nil): rule.badge = true
        case ("fields", let names?):
            for field in names.split(separator: "+", omittingEmptySubsequences: false) {
                rule.fields.append(try word(String(field), name))
            }
            guard rule.fields.count <= 16 else {
                throw RefusedValue(
                    complaint: "a rule has \(rule.fields.count) fields, and 16 at most",
                    cure: "A notification is small: name those that its text needs.")
            }
        default:
            throw RefusedValue(
                complaint: "\(quoted(name + (value.map { "=" + $0 } ?? ""))) is no part of a rule",
                cure: "Known are title=KEY, body=KEY, sound=NAME, badge and fields=NAME+NAME.")
        }
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
            rule.kind.map { $0 == .alert ? "alert" : "background" } ?? "none", rule.filter,
        ]
        if let key = rule.titleKey { words.append("title=\(key)") }
        if let key = rule.bodyKey { words.append("body=\(key)") }
        if let sound = rule.sound { words.append("sound=\(sound)") }
        if rule.badge { words.append("badge") }
        if !rule.fields.isEmpty { words.append("fields=" + rule.fields.joined(separator: "+")) }
        return words.joined(separator: " ")
    }
}
