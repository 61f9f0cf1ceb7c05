import HermesTesting
import Testing

@testable import Authorization

/// Compares operations on filters with all topics of a small set.
@Suite("Topic sets")
struct TopicSetTests {
    static let levels = ["a", "b", "", "$x"]
    /// One level deeper than any filter, to include topics that only `#` reaches.
    static let topics: [String] = {
        var topics: [String] = []
        var last = [""]
        for depth in 1...4 {
            last = last.flatMap { prefix in
                levels.map { depth == 1 ? $0 : "\(prefix)/\($0)" }
            }
            topics += last
        }
        // Includes the empty string, which is no topic name [MQTT-4.7.3-1], as one level.
        return topics
    }()

    static let filters: [String] = {
        let inner = levels + ["+"]
        let one = inner + ["#"]
        let two = inner.flatMap { first in one.map { "\(first)/\($0)" } }
        let three = inner.flatMap { first in two.map { "\(first)/\($0)" } }
        return (one + two + three).filter { !$0.isEmpty }
    }()

    /// The definition of matching in section 4.7.1 and [MQTT-4.7.2-1].
    static func naive(_ filter: String, _ topic: String, reachesDollar: Bool) -> Bool {
        let filter = filter.split(separator: "/", omittingEmptySubsequences: false)
        let topic = topic.split(separator: "/", omittingEmptySubsequences: false)
        if !reachesDollar, topic[0].hasPrefix("$"), filter[0] == "+" || filter[0] == "#" {
            return false
        }
        for (index, level) in filter.enumerated() {
            if level == "#" { return true }
            guard index < topic.count else { return false }
            if level != "+", level != topic[index] { return false }
        }
        return filter.count == topic.count
            || (filter.count == topic.count + 1 && filter.last == "#")
    }

    /// One bit for each of ``topics``, eight words for their 340.
    private static func bits(_ filter: String, reachesDollar: Bool) -> [UInt64] {
        var words = [UInt64](repeating: 0, count: 8)
        for (index, topic) in topics.enumerated()
        where naive(filter, topic, reachesDollar: reachesDollar) {
            words[index / 64] |= 1 << UInt64(index % 64)
        }
        return words
    }

    private static func topics(_ bits: [UInt64]) -> [String] {
        topics.enumerated().filter { bits[$0.offset / 64] >> UInt64($0.offset % 64) & 1 == 1 }
            .map(\.element)
    }

    @Test("the topics fit in the words of a set") func count() {
        #expect(Self.topics.count <= 512 && Self.topics.count > 300)
    }

    @Test("subset and intersection agree with all topics", arguments: [false, true])
    func algebra(reachesDollar: Bool) {
        let texts = Texts(Self.filters)
        let own = texts.all.map { filter, text in
            (
                TopicSet(filter: text, reachesDollar: false),
                Self.bits(filter, reachesDollar: false)
            )
        }
        let other = texts.all.map { filter, text in
            (
                TopicSet(filter: text, reachesDollar: reachesDollar),
                Self.bits(filter, reachesDollar: reachesDollar)
            )
        }
        var ofText: [String: [UInt64]] = [:]
        for (first, (left, leftBits)) in own.enumerated() {
            for (second, (right, rightBits)) in other.enumerated() {
                let isSubset = (0..<8).allSatisfy { leftBits[$0] & ~rightBits[$0] == 0 }
                let names = "\(Self.filters[first]) and \(Self.filters[second])"
                if left.isSubset(of: right) != isSubset { Issue.record("subset of \(names)") }
                var found = [UInt64](repeating: 0, count: 8)
                if let text = left.intersection(right)?.text {
                    found = ofText[text] ?? Self.bits(text, reachesDollar: false)
                    ofText[text] = found
                }
                let common = (0..<8).map { leftBits[$0] & rightBits[$0] }
                if found != common { Issue.record("intersection of \(names)") }
            }
        }
        withExtendedLifetime(texts) {}
    }

    @Test("the intersection of two sets is compared with a third")
    func commonPart() throws {
        var random = SplitMix64(seed: 1)
        let texts = Texts(Self.filters)
        let sets = texts.all.flatMap { filter, text in
            [false, true].map { reachesDollar in
                (
                    name: "\(filter) \(reachesDollar)",
                    set: TopicSet(filter: text, reachesDollar: reachesDollar),
                    bits: Self.bits(filter, reachesDollar: reachesDollar)
                )
            }
        }
        var found = 0
        for _ in 0..<40_000 {
            let picks = (0..<3).compactMap { _ in sets.randomElement(using: &random) }
            guard let common = picks[0].set.intersection(picks[1].set) else { continue }
            let isSubset = (0..<8).allSatisfy {
                picks[0].bits[$0] & picks[1].bits[$0] & ~picks[2].bits[$0] == 0
            }
            if common.isSubset(of: picks[2].set) != isSubset {
                Issue.record("\(picks.map(\.name))")
            }
            if isSubset { found += 1 }
        }
        #expect(found > 100)
        withExtendedLifetime(texts) {}
    }

    @Test(
        "matching agrees with the definition for every filter and topic", arguments: [false, true])
    func matching(isAllow: Bool) {
        let nobody = AccessSubject(
            userName: nil, clientID: UnsafeRawBufferPointer(start: nil, count: 0))
        var names = PlaceholderNames(nobody)
        var steps = 0
        for filter in Self.filters {
            for topic in Self.topics {
                let expected = Self.naive(filter, topic, reachesDollar: !isAllow)
                let matches = Array(filter.utf8).withUnsafeBytes { pattern in
                    Array(topic.utf8).withUnsafeBytes { topic in
                        TopicPattern.matches(
                            pattern, topic: topic, &names, isAllow: isAllow, steps: &steps)
                    }
                }
                if matches != expected { Issue.record("\(filter) and \(topic)") }
            }
        }
    }

    @Test(
        "the answer to SUBSCRIBE agrees with the decisions for all topics",
        arguments: UInt64(1)...40)
    func subscriptionVerdicts(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var lines: [String] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let filter = try #require(Self.filters.randomElement(using: &random))
                let effect = Bool.random(using: &random) ? "allow" : "deny"
                lines.append("\(effect) everyone subscribe \(filter.isEmpty ? "a" : filter)")
            }
            let rules = try rules(lines.joined(separator: "\n"))
            for _ in 0..<10 {
                let filter = try #require(Self.filters.randomElement(using: &random))
                let wanted = Self.topics(Self.bits(filter, reachesDollar: false))
                let allowed = wanted.filter { rules.decide(.subscribe, $0).isAllowed }
                switch rules.subscription(filter) {
                case .whole: #expect(allowed == wanted, "\(lines) \(filter)")
                case .nothing: #expect(allowed.isEmpty, "\(lines) \(filter)")
                case .part: continue
                }
            }
        }
    }
}

/// Filters whose bytes sets may borrow while this object lives.
private final class Texts {
    let all: [(String, UnsafeRawBufferPointer)]

    init(_ filters: [String]) {
        all = filters.map { filter in
            let bytes = UnsafeMutableRawBufferPointer.allocate(
                byteCount: filter.utf8.count, alignment: 1)
            bytes.copyBytes(from: filter.utf8)
            return (filter, UnsafeRawBufferPointer(bytes))
        }
    }

    deinit { for (_, bytes) in all { bytes.deallocate() } }
}

extension TopicSet {
    fileprivate var text: String {
        levels.map { level in
            switch level {
            case .exact(let text): String(decoding: text, as: UTF8.self)
            case .single: "+"
            case .multi: "#"
            }
        }.joined(separator: "/")
    }
}
