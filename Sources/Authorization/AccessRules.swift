import Structures

/// The rules of one ACL file. From top to bottom, the first rule that fits decides; if none fits,
/// the answer is no. So a file without rules denies everything.
///
/// Immutable, so that any thread may ask. The rules stand in lists by action and by the clients that
/// they are about. A question looks at those for all clients, for clients with or without a user name,
/// for the client's user and for its client identifier, in the order of the file, and at no others.
/// General rules without placeholders decide alike for every client, so they are asked once for a topic
/// (``RuleMemo``). It allocates nothing.
public final class AccessRules: Sendable {
    /// A rule whose texts are ranges of ``texts``.
    struct Compiled: BitwiseCopyable {
        struct Text: BitwiseCopyable {
            var start: UInt32 = 0
            var count: UInt32 = 0
        }

        enum Who: UInt8, BitwiseCopyable {
            case everyone, anonymous, anyUser, user
        }

        var filter = Text()
        var userName = Text()
        var clientID = Text()
        var who = Who.everyone
        var hasClientID = false
        /// True when the filter has `%u` or `%c`.
        var hasPlaceholder = false
        var isAllow = false
        /// Raw values of ``AccessAction``, combined.
        var actions: UInt8 = 0
        var line: UInt32 = 0
    }

    /// A list of rules: a range of ``lists``, which holds ascending indices into ``compiled``.
    struct List: BitwiseCopyable {
        var start: UInt32 = 0
        var count: UInt32 = 0
    }

    /// The rules of one name, for each action.
    struct ListsByAction: BitwiseCopyable {
        var publish = List()
        var subscribe = List()

        subscript(action: AccessAction) -> List {
            switch action {
            case .publish: publish
            case .subscribe: subscribe
            }
        }
    }

    /// All rules in the order of the file.
    public let rules: [AccessRule]
    /// A warning that users other than the file's owner can change it, with the command that mends
    /// this; `nil` when they cannot.
    public let accessWarning: String?

    private let compiled: [Compiled]
    private let texts: [UInt8]
    private let lists: [UInt32]
    /// The rules that name neither a user nor a client, for each action.
    private let generalOfPublish: GeneralRules
    private let generalOfSubscribe: GeneralRules
    private let ofUser: NameTable
    private let ofClient: NameTable

    /// Compiles rules whose topic filters are well formed.
    init(_ rules: [AccessRule], accessWarning: String? = nil) {
        self.rules = rules
        self.accessWarning = accessWarning
        var builder = AccessRulesBuilder()
        for rule in rules { builder.add(rule) }
        var lists: [UInt32] = []
        generalOfPublish = builder.general(.publish, to: &lists)
        generalOfSubscribe = builder.general(.subscribe, to: &lists)
        ofUser = NameTable(builder.ofUser.mapValues { builder.byAction($0, to: &lists) })
        ofClient = NameTable(builder.ofClient.mapValues { builder.byAction($0, to: &lists) })
        compiled = builder.compiled
        texts = builder.texts
        self.lists = lists
    }

    /// Decides whether a client may publish to a topic name, or receive its messages.
    ///
    /// `memo` is used for questions about one topic after the other; it belongs to these rules alone.
    /// `steps` grows by the cost of the question: about one for each rule that is looked at, and for
    /// each 32 bytes of the topic that are compared with it.
    public func decide(
        _ action: AccessAction, topic: UnsafeRawBufferPointer, for subject: AccessSubject,
        memo: inout RuleMemo, steps: inout Int
    ) -> AccessVerdict {
        steps += Self.leastSteps(subject)
        memo.begin(topic, action)
        let general = general(action)
        let kind = GeneralRules.Kind.of(subject)
        return texts.withUnsafeBytes { texts in
            var decisive = min(
                firstMatch(of: .everyone, general, topic, texts, &memo, &steps),
                firstMatch(of: kind, general, topic, texts, &memo, &steps))
            var names = PlaceholderNames(subject)
            var cursors = own(action, subject)
            cursors.0 = Cursor(general[.everyone].varying, lists)
            cursors.1 = Cursor(general[kind].varying, lists)
            while true {
                let index = Self.next(&cursors, lists)
                guard index < decisive else { break }
                let rule = compiled[Int(index)]
                guard isAbout(rule, subject, texts) else {
                    steps += 1
                    continue
                }
                guard
                    TopicPattern.matches(
                        Self.text(rule.filter, in: texts), topic: topic, &names,
                        isAllow: rule.isAllow, steps: &steps)
                else { continue }
                decisive = index
                break
            }
            guard decisive != .max else { return AccessVerdict(isAllowed: false, line: 0) }
            let rule = compiled[Int(decisive)]
            return AccessVerdict(isAllowed: rule.isAllow, line: rule.line)
        }
    }

    public func decide(
        _ action: AccessAction, topic: UnsafeRawBufferPointer, for subject: AccessSubject
    ) -> AccessVerdict {
        var memo = RuleMemo()
        var steps = 0
        return decide(action, topic: topic, for: subject, memo: &memo, steps: &steps)
    }

    /// The first of the fixed rules for a kind of clients that fits a topic; the largest index without
    /// one.
    @inline(__always)
    private func firstMatch(
        of kind: GeneralRules.Kind, _ general: GeneralRules, _ topic: UnsafeRawBufferPointer,
        _ texts: UnsafeRawBufferPointer, _ memo: inout RuleMemo, _ steps: inout Int
    ) -> UInt32 {
        if let known = memo[kind] { return known }
        let first = firstMatch(general[kind].fixed, topic, texts, &steps)
        memo[kind] = first
        return first
    }

    private func firstMatch(
        _ list: List, _ topic: UnsafeRawBufferPointer, _ texts: UnsafeRawBufferPointer,
        _ steps: inout Int
    ) -> UInt32 {
        var names = PlaceholderNames(nil)
        for place in Int(list.start)..<Int(list.start + list.count) {
            let index = lists[place]
            let rule = compiled[Int(index)]
            if TopicPattern.matches(
                Self.text(rule.filter, in: texts), topic: topic, &names, isAllow: rule.isAllow,
                steps: &steps)
            {
                return index
            }
        }
        return .max
    }

    /// Steps of a question before any rule: to find the lists of the client's names.
    private static func leastSteps(_ subject: AccessSubject) -> Int { 8 + nameSteps(subject) }

    private static func nameSteps(_ subject: AccessSubject) -> Int {
        (subject.clientID.count + (subject.userName?.count ?? 0)) / 64
    }

    private func general(_ action: AccessAction) -> GeneralRules {
        switch action {
        case .publish: generalOfPublish
        case .subscribe: generalOfSubscribe
        }
    }

    /// Decides which topics of a filter a client may receive; SUBSCRIBE is answered by this.
    ///
    /// The answer may be `part` although nothing is allowed: when several `deny` rules only
    /// together cover the filter, or when the comparison of rules reaches its limit. That is safe,
    /// because each message is then checked as well. `filter` must be well formed; of a shared
    /// subscription it is the part behind the group's name.
    ///
    /// `steps` grows by the cost of the question: about one for each rule about the client.
    public func decideSubscription(
        filter: UnsafeRawBufferPointer, for subject: AccessSubject, steps: inout Int
    ) -> SubscriptionVerdict {
        let names = TopicPattern.Names(subject)
        steps += Self.nameSteps(subject)
        let asked = TopicSet(filter: filter, reachesDollar: false)
        var denied: [TopicSet] = []
        var comparisons = 0
        var allowedLine: UInt32?
        var verdict: SubscriptionVerdict?
        texts.withUnsafeBytes { texts in
            forEachRule(.subscribe, subject, texts, steps: &steps) { rule in
                let pattern = Self.text(rule.filter, in: texts)
                guard
                    let topics = TopicPattern.topics(pattern, names, isAllow: rule.isAllow),
                    let common = asked.intersection(topics)
                else { return true }
                let reachesAll = asked.isSubset(of: topics)
                guard rule.isAllow else {
                    guard reachesAll else {
                        denied.append(topics)
                        return true
                    }
                    verdict = allowedLine.map { .part(line: $0) } ?? .nothing(line: rule.line)
                    return false
                }
                guard !reachesAll else {
                    verdict =
                        denied.isEmpty
                        ? .whole(line: rule.line) : .part(line: allowedLine ?? rule.line)
                    return false
                }
                // One allowed part is enough to know, and each further one would be compared with
                // all denials.
                guard allowedLine == nil else { return true }
                guard comparisons < Self.mostComparisons else {
                    verdict = .part(line: rule.line)
                    return false
                }
                comparisons += denied.count
                if !denied.contains(where: { common.isSubset(of: $0) }) { allowedLine = rule.line }
                return true
            }
        }
        steps += comparisons
        return verdict ?? allowedLine.map { .part(line: $0) } ?? .nothing(line: 0)
    }

    public func decideSubscription(
        filter: UnsafeRawBufferPointer, for subject: AccessSubject
    ) -> SubscriptionVerdict {
        var steps = 0
        return decideSubscription(filter: filter, for: subject, steps: &steps)
    }

    /// The largest number of comparisons between allowed and denied topics for one filter.
    private static var mostComparisons: Int { 10_000 }

    private typealias Cursors = (Cursor, Cursor, Cursor, Cursor)

    /// The rules for the client's user and for its client identifier, behind two empty lists.
    @inline(__always)
    private func own(_ action: AccessAction, _ subject: AccessSubject) -> Cursors {
        let ofUser = subject.userName.flatMap { self.ofUser.find($0) }
        let ofClient = self.ofClient.find(subject.clientID)
        return (
            Cursor(List(), lists), Cursor(List(), lists),
            Cursor(ofUser?[action] ?? List(), lists), Cursor(ofClient?[action] ?? List(), lists)
        )
    }

    /// The next rule in the order of the file; the largest index when there is none.
    @inline(__always)
    private static func next(_ cursors: inout Cursors, _ lists: [UInt32]) -> UInt32 {
        let index = min(
            min(cursors.0.head, cursors.1.head), min(cursors.2.head, cursors.3.head))
        guard index != .max else { return index }
        // Each rule stands in one list only.
        cursors.0.pass(index, lists)
        cursors.1.pass(index, lists)
        cursors.2.pass(index, lists)
        cursors.3.pass(index, lists)
        return index
    }

    /// Calls `body` for the rules about this client and action, in the order of the file, until it
    /// returns false. `steps` grows by one for each rule that is looked at.
    @inline(__always)
    private func forEachRule(
        _ action: AccessAction, _ subject: AccessSubject, _ texts: UnsafeRawBufferPointer,
        steps: inout Int, _ body: (Compiled) -> Bool
    ) {
        let general = general(action)
        var cursors = own(action, subject)
        cursors.0 = Cursor(general[.everyone].all, lists)
        cursors.1 = Cursor(general[.of(subject)].all, lists)
        while true {
            let index = Self.next(&cursors, lists)
            guard index != .max else { return }
            steps += 1
            let rule = compiled[Int(index)]
            guard isAbout(rule, subject, texts) else { continue }
            guard body(rule) else { return }
        }
    }

    private func isAbout(
        _ rule: Compiled, _ subject: AccessSubject, _ texts: UnsafeRawBufferPointer
    ) -> Bool {
        switch rule.who {
        case .everyone: break
        case .anonymous: guard subject.userName == nil else { return false }
        case .anyUser: guard subject.userName != nil else { return false }
        case .user:
            guard let userName = subject.userName,
                Self.text(rule.userName, in: texts).elementsAreEqual(to: userName)
            else { return false }
        }
        return !rule.hasClientID
            || Self.text(rule.clientID, in: texts)
                .elementsAreEqual(to: subject.clientID)
    }

    private static func text(
        _ text: Compiled.Text, in texts: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        let start = Int(text.start)
        return UnsafeRawBufferPointer(rebasing: texts[start..<start + Int(text.count)])
    }

    /// A position in one list of rules.
    private struct Cursor {
        /// The rule at the position; the largest index behind the last.
        private(set) var head: UInt32
        private var next: UInt32
        private let end: UInt32

        @inline(__always)
        init(_ list: List, _ lists: [UInt32]) {
            next = list.start
            end = list.start + list.count
            head = next < end ? lists[Int(next)] : .max
        }

        @inline(__always)
        mutating func pass(_ index: UInt32, _ lists: [UInt32]) {
            guard head == index else { return }
            next += 1
            head = next < end ? lists[Int(next)] : .max
        }
    }
}
