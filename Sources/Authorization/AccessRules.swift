import Structures

/// The rules of one ACL file. From top to bottom, the first rule that fits decides; if none fits,
/// the answer is no. So a file without rules denies everything.
///
/// Immutable, so that any thread may ask. A question looks at the rules for all clients, for the
/// client's user and for its client identifier, in the order of the file, and at no rules for
/// others. It allocates nothing.
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

    /// All rules in the order of the file.
    public let rules: [AccessRule]
    /// A warning that users other than the file's owner can change it, with the command that mends
    /// this; `nil` when they cannot.
    public let accessWarning: String?

    private let compiled: [Compiled]
    private let texts: [UInt8]
    private let lists: [UInt32]
    private let general: List
    private let ofUser: NameTable
    private let ofClient: NameTable

    /// Compiles rules whose topic filters are well formed.
    init(_ rules: [AccessRule], accessWarning: String? = nil) {
        self.rules = rules
        self.accessWarning = accessWarning
        var builder = AccessRulesBuilder()
        for rule in rules { builder.add(rule) }
        var lists: [UInt32] = []
        general = builder.append(builder.general, to: &lists)
        ofUser = NameTable(builder.ofUser.mapValues { builder.append($0, to: &lists) })
        ofClient = NameTable(builder.ofClient.mapValues { builder.append($0, to: &lists) })
        compiled = builder.compiled
        texts = builder.texts
        self.lists = lists
    }

    /// Decides whether a client may publish to a topic name, or receive its messages.
    public func decide(
        _ action: AccessAction, topic: UnsafeRawBufferPointer, for subject: AccessSubject
    ) -> AccessVerdict {
        var verdict = AccessVerdict(isAllowed: false, line: 0)
        texts.withUnsafeBytes { texts in
            forEachRule(action, subject, texts) { rule in
                let pattern = Self.text(rule.filter, in: texts)
                guard
                    TopicPattern.matches(
                        pattern, topic: topic, subject, isAllow: rule.isAllow)
                else { return true }
                verdict = AccessVerdict(isAllowed: rule.isAllow, line: rule.line)
                return false
            }
        }
        return verdict
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
        steps += (subject.clientID.count + (subject.userName?.count ?? 0)) / 64
        let asked = TopicSet(filter: filter, reachesDollar: false)
        var denied: [TopicSet] = []
        var comparisons = 0
        var allowedLine: UInt32?
        var verdict: SubscriptionVerdict?
        texts.withUnsafeBytes { texts in
            forEachRule(.subscribe, subject, texts) { rule in
                steps += 1
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

    /// Calls `body` for the rules about this client and action, in the order of the file, until it
    /// returns false.
    @inline(__always)
    private func forEachRule(
        _ action: AccessAction, _ subject: AccessSubject, _ texts: UnsafeRawBufferPointer,
        _ body: (Compiled) -> Bool
    ) {
        var first = Cursor(general)
        var second = Cursor(subject.userName.flatMap { ofUser.find($0) } ?? List())
        var third = Cursor(ofClient.find(subject.clientID) ?? List())
        while true {
            let index = min(first.head(lists), second.head(lists), third.head(lists))
            guard index != .max else { return }
            // Each rule stands in one list only.
            first.pass(index, lists)
            second.pass(index, lists)
            third.pass(index, lists)
            let rule = compiled[Int(index)]
            guard rule.actions & action.rawValue != 0, isAbout(rule, subject, texts) else {
                continue
            }
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
        var next: UInt32
        let end: UInt32

        init(_ list: List) {
            next = list.start
            end = list.start + list.count
        }

        @inline(__always)
        func head(_ lists: [UInt32]) -> UInt32 { next < end ? lists[Int(next)] : .max }

        @inline(__always)
        mutating func pass(_ index: UInt32, _ lists: [UInt32]) {
            if head(lists) == index { next += 1 }
        }
    }
}

/// Sorts rules into lists by the user or client that they are about.
struct AccessRulesBuilder {
    private(set) var compiled: [AccessRules.Compiled] = []
    private(set) var texts: [UInt8] = []
    /// Indices of rules that name neither a user nor a client.
    private(set) var general: [UInt32] = []
    private(set) var ofUser: [[UInt8]: [UInt32]] = [:]
    /// Indices of rules that name a client and no user.
    private(set) var ofClient: [[UInt8]: [UInt32]] = [:]

    mutating func add(_ rule: AccessRule) {
        let index = UInt32(compiled.count)
        var result = AccessRules.Compiled()
        result.line = UInt32(clamping: rule.line)
        result.isAllow = rule.isAllow
        result.actions = rule.actions.reduce(0) { $0 | $1.rawValue }
        result.filter = append(RuleFilter.pattern(rule.filter))
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

    func append(_ indices: [UInt32], to lists: inout [UInt32]) -> AccessRules.List {
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

/// A table of names, each with its rules; a name in borrowed bytes is found without an allocation.
struct NameTable: Sendable {
    private var names: [[UInt8]] = []
    private var lists: [AccessRules.List] = []
    /// A hash table of indices of names plus 1; 0 is a free slot. The size is a power of two and at
    /// most half is used; empty without names.
    private var slots: [UInt32] = []
    private let keyedHash = KeyedHash(seed: UInt64.random(in: .min ... .max))

    init(_ listOfName: [[UInt8]: AccessRules.List]) {
        guard !listOfName.isEmpty else { return }
        var capacity = 2
        while capacity < 2 * listOfName.count { capacity *= 2 }
        slots = [UInt32](repeating: 0, count: capacity)
        for (name, list) in listOfName {
            names.append(name)
            lists.append(list)
            var position = name.withUnsafeBytes { place(of: $0) }
            while slots[position] != 0 { position = (position + 1) & (capacity - 1) }
            slots[position] = UInt32(names.count)
        }
    }

    func find(_ name: UnsafeRawBufferPointer) -> AccessRules.List? {
        guard !slots.isEmpty else { return nil }
        var position = place(of: name)
        while slots[position] != 0 {
            let index = Int(slots[position]) - 1
            if names[index].withUnsafeBytes({ $0.elementsAreEqual(to: name) }) {
                return lists[index]
            }
            position = (position + 1) & (slots.count - 1)
        }
        return nil
    }

    private func place(of name: UnsafeRawBufferPointer) -> Int {
        Int(truncatingIfNeeded: keyedHash(name)) & (slots.count - 1)
    }
}
