import PlainText
import Structures

/// The topics that a login allows its client besides what the access rules allow: a client may do
/// what both allow. For each action a list of topic filters, which may hold `%u` and `%c` as those
/// of rules; a missing list leaves everything to the rules, and an empty one allows nothing.
///
/// Immutable, so that any thread may ask, and shared by all clients whose logins have the same lists.
/// A question allocates nothing, and looks at each filter of a list.
public final class TopicAllowance: Sendable {
    /// The most filters of one list.
    public static let mostFilters = 100

    /// A list cannot be used; the text is a clause such as "topic filter "a/#/b" has a # before its
    /// end".
    public struct Malformed: Error, Equatable, Sendable {
        public let complaint: String
    }

    /// The filters of one action, compiled; each is a part of ``texts``.
    private struct List: Sendable {
        var texts: [UInt8] = []
        var ends: [UInt32] = []

        init(_ filters: [String]) throws(Malformed) {
            guard filters.count <= mostFilters else {
                throw Malformed(
                    complaint: "list has \(filters.count) topic filters, more than \(mostFilters)")
            }
            for filter in filters {
                let bytes = Array(filter.utf8)
                let isPlain = filter.unicodeScalars.allSatisfy {
                    $0.value >= 0x20 && $0.value != 0x7F
                }
                guard isPlain else {
                    throw Malformed(complaint: "list has a topic filter with a control character")
                }
                do throws(RuleFilter.Flaw) {
                    try RuleFilter.check(bytes, hasUser: true)
                } catch {
                    throw Malformed(
                        complaint: """
                            topic filter \(VisibleText.quoted(String(filter.prefix(80)))) \(error.complaint)
                            """)
                }
                texts += RuleFilter.pattern(bytes)
                ends.append(UInt32(texts.count))
            }
        }

        /// Calls `body` with each filter until it returns false.
        @inline(__always)
        func forEach(_ body: (UnsafeRawBufferPointer) -> Bool) {
            texts.withUnsafeBytes { texts in
                var start = 0
                for end in ends {
                    let filter = UnsafeRawBufferPointer(rebasing: texts[start..<Int(end)])
                    guard body(filter) else { return }
                    start = Int(end)
                }
            }
        }
    }

    private let publish: List?
    private let subscribe: List?
    /// True when the access rules are not asked, and the lists alone hold.
    public let overrulesAccessRules: Bool
    /// Memory that it takes, for limits.
    public let byteCount: Int

    /// - Parameters:
    ///   - publish: filters of topics to publish to; `nil` without such a list.
    ///   - subscribe: filters of topics to receive; `nil` without such a list.
    ///   - overrulesAccessRules: true for a login to which no access rules apply.
    /// - Throws: ``Malformed``.
    public init(
        publish: [String]?, subscribe: [String]?, overrulesAccessRules: Bool = false
    ) throws(Malformed) {
        self.overrulesAccessRules = overrulesAccessRules
        // `map` does not pass typed errors of a closure on.
        if let publish { self.publish = try List(publish) } else { self.publish = nil }
        if let subscribe { self.subscribe = try List(subscribe) } else { self.subscribe = nil }
        byteCount =
            64
            + [self.publish, self.subscribe].reduce(0) { sum, list in
                sum + (list?.texts.count ?? 0) + 4 * (list?.ends.count ?? 0)
            }
    }

    /// True when the client may publish to a topic name, or receive its messages, as far as its
    /// login is concerned. `steps` grows by about one for each filter that is looked at, and for each
    /// 32 bytes of the topic that are compared with it.
    public func allows(
        _ action: AccessAction, topic: UnsafeRawBufferPointer, for subject: AccessSubject,
        steps: inout Int
    ) -> Bool {
        guard let list = list(action) else { return true }
        var isAllowed = false
        var names = PlaceholderNames(subject)
        list.forEach { filter in
            isAllowed = TopicPattern.matches(
                filter, topic: topic, &names, isAllow: true, steps: &steps)
            return !isAllowed
        }
        return isAllowed
    }

    /// How much of a topic filter the client may receive.
    public enum Extent: Sendable {
        case whole, part, nothing
    }

    /// Decides which topics of a subscription's filter the client may receive. `steps` grows by one
    /// for each filter of the list.
    public func extent(
        ofFilter filter: UnsafeRawBufferPointer, for subject: AccessSubject, steps: inout Int
    ) -> Extent {
        guard let subscribe else { return .whole }
        steps += subscribe.ends.count
        let names = TopicPattern.Names(subject)
        let asked = TopicSet(filter: filter, reachesDollar: false)
        var extent = Extent.nothing
        subscribe.forEach { pattern in
            guard let topics = TopicPattern.topics(pattern, names, isAllow: true),
                asked.intersection(topics) != nil
            else { return true }
            extent = asked.isSubset(of: topics) ? .whole : .part
            if case .whole = extent { return false }
            return true
        }
        return extent
    }

    private func list(_ action: AccessAction) -> List? {
        switch action {
        case .publish: publish
        case .subscribe: subscribe
        }
    }

    /// The same decisions for every client.
    public func isEquivalent(to other: TopicAllowance) -> Bool {
        func equal(_ left: List?, _ right: List?) -> Bool {
            left?.texts == right?.texts && left?.ends == right?.ends
                && (left == nil) == (right == nil)
        }
        return self === other
            || overrulesAccessRules == other.overrulesAccessRules
                && equal(publish, other.publish) && equal(subscribe, other.subscribe)
    }
}
