/// The rules of one action that name neither a user nor a client, by the clients that they are about.
struct GeneralRules: BitwiseCopyable {
    /// The clients that such a rule is about.
    enum Kind: UInt8, BitwiseCopyable, CaseIterable {
        case everyone, anonymous, anyUser

        /// The kind beside ``everyone`` to which a client belongs.
        static func of(_ subject: AccessSubject) -> Kind {
            subject.userName == nil ? .anonymous : .anyUser
        }
    }

    struct Lists: BitwiseCopyable {
        /// Rules without placeholders: they decide about a topic alike for each client of the kind.
        var fixed = AccessRules.List()
        /// Rules with placeholders.
        var varying = AccessRules.List()
        /// Both, in the order of the file.
        var all = AccessRules.List()
    }

    private var everyone = Lists()
    private var anonymous = Lists()
    private var anyUser = Lists()

    subscript(kind: Kind) -> Lists {
        get {
            switch kind {
            case .everyone: everyone
            case .anonymous: anonymous
            case .anyUser: anyUser
            }
        }
        set {
            switch kind {
            case .everyone: everyone = newValue
            case .anonymous: anonymous = newValue
            case .anyUser: anyUser = newValue
            }
        }
    }
}

/// Sorts rules into lists by action and by the user or client that they are about.
struct AccessRulesBuilder {
    private(set) var compiled: [AccessRules.Compiled] = []
    private(set) var texts: [UInt8] = []
    /// Indices of rules that name neither a user nor a client.
    private var general: [UInt32] = []
    private(set) var ofUser: [[UInt8]: [UInt32]] = [:]
    /// Indices of rules that name a client and no user.
    private(set) var ofClient: [[UInt8]: [UInt32]] = [:]

    mutating func add(_ rule: AccessRule) {
        let index = UInt32(compiled.count)
        var result = AccessRules.Compiled()
        result.line = UInt32(clamping: rule.line)
        result.isAllow = rule.isAllow
        result.actions = rule.actions.reduce(0) { $0 | $1.rawValue }
        let pattern = RuleFilter.pattern(rule.filter)
        result.filter = append(pattern)
        result.hasPlaceholder = pattern.contains {
            $0 == TopicPattern.userPlaceholder || $0 == TopicPattern.clientPlaceholder
        }
        if let identifier = rule.clientID {
            result.hasClientID = true
            result.clientID = append(identifier)
        }
        switch rule.who {
        case .everyone: result.who = .everyone
        case .anonymous: result.who = .anonymous
        case .anyUser: result.who = .anyUser
        case .user(let name):
            result.who = .user
            result.userName = append(name)
            ofUser[name, default: []].append(index)
        }
        if result.who != .user {
            if let identifier = rule.clientID {
                ofClient[identifier, default: []].append(index)
            } else {
                general.append(index)
            }
        }
        compiled.append(result)
    }

    /// The general rules of an action.
    func general(_ action: AccessAction, to lists: inout [UInt32]) -> GeneralRules {
        var rules = GeneralRules()
        for kind in GeneralRules.Kind.allCases {
            let all = general.filter { index in
                let rule = compiled[Int(index)]
                return rule.actions & action.rawValue != 0 && rule.who.rawValue == kind.rawValue
            }
            rules[kind].all = append(all, to: &lists)
            rules[kind].fixed = append(
                all.filter { !compiled[Int($0)].hasPlaceholder }, to: &lists)
            rules[kind].varying = append(
                all.filter { compiled[Int($0)].hasPlaceholder }, to: &lists)
        }
        return rules
    }

    /// Lists of these rules, by action.
    func byAction(
        _ indices: [UInt32], to lists: inout [UInt32]
    ) -> AccessRules.ListsByAction {
        func list(_ action: AccessAction) -> AccessRules.List {
            append(
                indices.filter { compiled[Int($0)].actions & action.rawValue != 0 }, to: &lists)
        }
        return AccessRules.ListsByAction(publish: list(.publish), subscribe: list(.subscribe))
    }

    private func append(_ indices: [UInt32], to lists: inout [UInt32]) -> AccessRules.List {
        let start = UInt32(lists.count)
        lists.append(contentsOf: indices)
        return AccessRules.List(start: start, count: UInt32(indices.count))
    }

    private mutating func append(_ text: [UInt8]) -> AccessRules.Compiled.Text {
        let start = UInt32(texts.count)
        texts.append(contentsOf: text)
        return AccessRules.Compiled.Text(start: start, count: UInt32(text.count))
    }
}
