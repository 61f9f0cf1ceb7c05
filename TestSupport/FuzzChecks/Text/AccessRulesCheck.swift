import Authorization

/// Any bytes are access rules or a list of malformed lines, and rules decide as a matcher of thirty
/// lines does.
///
/// An input is an ACL file. Checked are: mistakes name lines of the file, in its order, and print
/// nothing of it that acts on a terminal; rules stand in the order of their lines, and what they print
/// is read as the same rules; for clients and topics that the rules name, the first rule that fits
/// decides.
enum AccessRulesCheck {
    /// Rules whose clients and topics are asked about.
    private static let mostAsked = 8

    /// A client and its names.
    private struct Client {
        var userName: [UInt8]?
        var identifier: [UInt8]
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        switch parse(input) {
        case .failure(let error):
            trace?("\(error)")
            try checkMistakes(error, in: input)
        case .success(let rules):
            trace?(rules.rules.map(\.description).joined(separator: "\n"))
            try checkRules(rules.rules, in: input)
            try checkDecisions(rules)
        }
    }

    private static func checkMistakes(
        _ error: AccessRulesError, in input: [UInt8]
    ) throws(CheckFailure) {
        try CheckFailure.unless(
            (1...100).contains(error.problems.count), "\(error.problems.count) mistakes are kept")
        try PrintedText.check(
            error.description, lines: error.problems.count + (error.omittedCount > 0 ? 1 : 0))
        var last = 0
        for problem in error.problems {
            guard let line = problem.line, line > last else {
                throw CheckFailure("\(problem) stands behind line \(last)")
            }
            try PrintedText.check(line: line, in: input)
            last = line
        }
    }

    private static func checkRules(
        _ rules: [AccessRule], in input: [UInt8]
    ) throws(CheckFailure) {
        var last = 0
        for rule in rules {
            try CheckFailure.unless(rule.line > last, "\(rule) stands behind line \(last)")
            try PrintedText.check(line: rule.line, in: input)
            last = rule.line
        }
        let printed = rules.map { $0.description + "\n" }.joined()
        guard case .success(let again) = parse(Array(printed.utf8)),
            again.rules.elementsEqual(rules, by: isSame)
        else { throw CheckFailure("read as other rules, or none:\n\(printed)") }
    }

    private static func isSame(_ one: AccessRule, _ other: AccessRule) -> Bool {
        one.isAllow == other.isAllow && one.who == other.who && one.actions == other.actions
            && one.clientID == other.clientID && one.filter == other.filter
    }

    // MARK: Decisions

    private static func checkDecisions(_ rules: AccessRules) throws(CheckFailure) {
        let asked = rules.rules.prefix(mostAsked)
        var clients = [Client(identifier: [0x63])]
        for rule in asked {
            let identifier = rule.clientID ?? [0x63]
            if case .user(let name) = rule.who {
                clients.append(Client(userName: name, identifier: identifier))
            } else {
                clients.append(Client(userName: [0x75], identifier: identifier))
                clients.append(Client(identifier: identifier))
            }
        }
        for rule in asked {
            for client in clients {
                let topic = topic(of: rule, client)
                for action in AccessAction.allCases {
                    let verdict = decide(rules, action, topic, client)
                    let first = rules.rules.first { fits($0, action, topic, client) }
                    let expected = AccessVerdict(
                        isAllowed: first?.isAllow ?? false, line: UInt32(first?.line ?? 0))
                    try CheckFailure.unless(
                        verdict == expected,
                        """
                        \(action) of \(client) on \(String(decoding: topic, as: UTF8.self)) is \
                        \(verdict) in place of \(expected)
                        """)
                }
            }
        }
    }

    private static func decide(
        _ rules: AccessRules, _ action: AccessAction, _ topic: [UInt8], _ client: Client
    ) -> AccessVerdict {
        // An empty user name is a name.
        let userName = client.userName ?? []
        return userName.withUnsafeBytes { userName in
            client.identifier.withUnsafeBytes { identifier in
                topic.withUnsafeBytes { topic in
                    rules.decide(
                        action, topic: topic,
                        for: AccessSubject(
                            userName: client.userName == nil ? nil : userName,
                            clientID: identifier))
                }
            }
        }
    }

    /// A topic that the rule may be about.
    private static func topic(of rule: AccessRule, _ client: Client) -> [UInt8] {
        let levels = split(rule.filter).map { level -> [UInt8] in
            switch String(decoding: level, as: UTF8.self) {
            case "+": [0x78]
            case "#": Array("y/z".utf8)
            case "%u": client.userName ?? [0x78]
            case "%c": client.identifier
            default: level
            }
        }
        return [UInt8](levels.joined(separator: [UInt8(ascii: "/")]))
    }

    private static func fits(
        _ rule: AccessRule, _ action: AccessAction, _ topic: [UInt8], _ client: Client
    ) -> Bool {
        switch rule.who {
        case .everyone: break
        case .anonymous: if client.userName != nil { return false }
        case .anyUser: if client.userName == nil { return false }
        case .user(let name): if client.userName != name { return false }
        }
        if let identifier = rule.clientID, identifier != client.identifier { return false }
        return rule.actions.contains(action) && matches(rule, topic, client)
    }

    /// The matcher; see `TopicPattern` for what placeholders and `$` mean.
    private static func matches(_ rule: AccessRule, _ topic: [UInt8], _ client: Client) -> Bool {
        let filter = split(rule.filter)
        let levels = split(topic)
        let beginsWithWildcard = [[UInt8(ascii: "+")], [UInt8(ascii: "#")]].contains(filter[0])
        if rule.isAllow, beginsWithWildcard, topic.first == UInt8(ascii: "$") { return false }
        for (index, level) in filter.enumerated() {
            let text = String(decoding: level, as: UTF8.self)
            if text == "#" { return index <= levels.count }
            guard index < levels.count else { return false }
            if text == "%u" || text == "%c" {
                guard let name = text == "%u" ? client.userName : client.identifier, isUsable(name)
                else { return !rule.isAllow }
                guard levels[index] == name else { return false }
            } else if text != "+", level != levels[index] {
                return false
            }
        }
        return filter.count == levels.count
    }

    /// Names from an ACL file hold no control characters but tabs.
    private static func isUsable(_ name: [UInt8]) -> Bool {
        !name.isEmpty && name.first != UInt8(ascii: "$")
            && !name.contains { "/+#\t".utf8.contains($0) }
    }

    private static func split(_ text: [UInt8]) -> [[UInt8]] {
        text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init)
    }

    private static func parse(_ bytes: [UInt8]) -> Result<AccessRules, AccessRulesError> {
        do throws(AccessRulesError) {
            return .success(try AccessRules(parsing: bytes, path: "acl"))
        } catch {
            return .failure(error)
        }
    }
}
