import Authorization
import HermesTesting
import Testing

@Suite("Access rules: what a question looks at")
struct RuleStepsTests {
    /// The steps of questions, one after the other with the same memo.
    private static func steps(
        _ rules: AccessRules, _ topics: [String], user: String? = "anna",
        client: String = "phone"
    ) -> [Int] {
        var memo = RuleMemo()
        return topics.map { topic in
            var steps = 0
            _ = rules.answer(
                .subscribe, topic, user: user, client: client, memo: &memo, steps: &steps)
            return steps
        }
    }

    private static func lines(_ count: Int, _ line: (Int) -> String) -> String {
        (0..<count).map(line).joined(separator: "\n") + "\n"
    }

    @Test("rules of another action, another user, another client or of the anonymous cost nothing")
    func skipped() throws {
        let text =
            Self.lines(1_000) { "deny everyone publish a/\($0)" }
            + Self.lines(1_000) { "deny user other\($0 % 10) subscribe a/\($0)" }
            + Self.lines(1_000) { "deny everyone client other\($0 % 10) subscribe a/\($0)" }
            + Self.lines(1_000) { "deny anonymous subscribe a/\($0)" }
            + "allow everyone subscribe #\n"
        #expect(try Self.steps(rules(text), ["b", "a/1"]).allSatisfy { $0 < 20 })
        #expect(try rules(text).decide(.subscribe, "a/1", user: "anna").isAllowed)
        #expect(try !rules(text).decide(.subscribe, "a/1").isAllowed)
    }

    @Test("rules for all are counted one by one, once for a topic that many receive")
    func general() throws {
        let text = Self.lines(1_000) { "deny everyone subscribe a/\($0)" } + "allow everyone both #"
        let steps = try Self.steps(rules(text), ["b", "b", "a/500", "b"])
        #expect((1_001...1_020).contains(steps[0]))
        #expect(steps[1] < 20)
        #expect((501...530).contains(steps[2]))
        #expect(steps[3] > 1_000, "the memo is of one topic")
    }

    @Test("rules of the client's own user and client identifier are counted each time")
    func own() throws {
        let text =
            Self.lines(300) { "deny user anna subscribe a/\($0)" }
            + Self.lines(200) { "deny everyone client phone subscribe a/\($0)" }
            + Self.lines(100) { "deny user anna client tablet subscribe a/\($0)" }
        for steps in try Self.steps(rules(text), ["b", "b"]) {
            // Rules about her other device are looked at too, and skipped.
            #expect((600...620).contains(steps))
        }
    }

    @Test("long topics and long names count by their bytes")
    func long() throws {
        let plus = try rules(Self.lines(10) { "deny everyone subscribe +/+/\($0)" })
        let long = String(repeating: "x", count: 32_000)
        #expect(try #require(Self.steps(plus, [long]).first) > 10 * 1_000)
        #expect(try #require(Self.steps(plus, ["x"]).first) < 40)
        let names = try rules(Self.lines(100) { "deny everyone subscribe \($0)/%c" })
        // The name is looked at once for all rules.
        let steps = try #require(Self.steps(names, ["5/x"], client: long).first)
        #expect((2_000...4_000).contains(steps))
    }

    @Test("a login's filters are counted one by one")
    func allowance() throws {
        let allowance = try TopicAllowance(
            publish: nil, subscribe: (0..<100).map { "a/\($0)" })
        var steps = 0
        let isAllowed = allowance.isAllowed("b", steps: &steps)
        #expect(!isAllowed)
        #expect((100...110).contains(steps))
    }

    // MARK: The order of the file

    private static let names = ["anna", "berta"]
    private static let clients = ["phone", "tablet"]
    private static let filters = [
        "#", "+", "a", "a/#", "a/+", "+/b", "a/b", "%u", "%u/#", "a/%c", "b/%u/%c",
    ]

    private static func line(_ random: inout SplitMix64) -> String {
        let who = random.pick([
            "everyone", "anonymous", "user *", "user anna", "user berta", "everyone",
        ])
        let client = random.once(in: 4) ? " client \(random.pick(clients))" : ""
        var filter = random.pick(filters)
        if who == "anonymous", filter.contains("%u") { filter = "a" }
        return "\(random.pick(["allow", "deny"])) \(who)\(client) "
            + "\(random.pick(["publish", "subscribe", "both"])) \(filter)"
    }

    /// The line that decides, by going through the file.
    private static func expected(
        _ rules: AccessRules, _ action: AccessAction, _ topic: String, _ user: String?,
        _ client: String
    ) -> AccessVerdict {
        for rule in rules.rules where rule.actions.contains(action) {
            switch rule.who {
            case .everyone: break
            case .anonymous: guard user == nil else { continue }
            case .anyUser: guard user != nil else { continue }
            case .user(let name): guard user.map({ Array($0.utf8) }) == name else { continue }
            }
            if let identifier = rule.clientID, identifier != Array(client.utf8) { continue }
            let text = String(decoding: rule.filter, as: UTF8.self)
            let isAboutNobody = text.contains("%u") && user == nil
            let filled = text.split(separator: "/", omittingEmptySubsequences: false)
                .map { $0 == "%u" ? user ?? "" : $0 == "%c" ? client : String($0) }
            if isAboutNobody, rule.isAllow { continue }
            let matches =
                isAboutNobody
                ? topic.hasPrefix(text.prefix { $0 != "%" }) : matches(filled, topic)
            if matches { return AccessVerdict(isAllowed: rule.isAllow, line: UInt32(rule.line)) }
        }
        return AccessVerdict(isAllowed: false, line: 0)
    }

    private static func matches(_ filter: [String], _ topic: String) -> Bool {
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        for (place, level) in filter.enumerated() {
            if level == "#" { return levels.count >= place }
            guard place < levels.count, level == "+" || level == levels[place] else { return false }
        }
        return filter.count == levels.count
    }

    @Test("the first line that fits decides, whatever was asked before", arguments: UInt64(1)...48)
    func order(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let count = random.number(in: 0...14)
        let text = (0..<count).map { _ in Self.line(&random) }.joined(separator: "\n")
        let rules = try rules(text)
        var memos = [RuleMemo(), RuleMemo()]
        for _ in 0..<300 {
            let action = random.pick(AccessAction.allCases)
            let topic = random.pick(["a", "a/b", "b", "anna", "a/phone", "b/anna/tablet", "x/b"])
            let user = random.pick([nil, "anna", "berta"])
            let client = random.pick(Self.clients)
            var steps = 0
            // One memo has questions of both actions, as no caller would.
            let verdict = rules.answer(
                action, topic, user: user, client: client,
                memo: &memos[random.number(in: 0...1)], steps: &steps)
            let expected = Self.expected(rules, action, topic, user, client)
            #expect(
                verdict == expected,
                "\(action) \(topic) by \(user ?? "nobody")/\(client), seed \(seed):\n\(text)")
        }
    }
}

extension AccessRules {
    fileprivate func answer(
        _ action: AccessAction, _ topic: String, user: String?, client: String,
        memo: inout RuleMemo, steps: inout Int
    ) -> AccessVerdict {
        Array(client.utf8).withUnsafeBytes { client in
            Array((user ?? "").utf8).withUnsafeBytes { name in
                Array(topic.utf8).withUnsafeBytes { topic in
                    decide(
                        action, topic: topic,
                        for: AccessSubject(userName: user == nil ? nil : name, clientID: client),
                        memo: &memo, steps: &steps)
                }
            }
        }
    }
}

extension TopicAllowance {
    fileprivate func isAllowed(_ topic: String, steps: inout Int) -> Bool {
        Array("phone".utf8).withUnsafeBytes { client in
            Array(topic.utf8).withUnsafeBytes { topic in
                allows(
                    .subscribe, topic: topic,
                    for: AccessSubject(userName: nil, clientID: client), steps: &steps)
            }
        }
    }
}
