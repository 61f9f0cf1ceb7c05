import Structures

/// A set of topic names: those that one topic filter matches (section 4.7), or those that two
/// filters match.
///
/// It borrows its texts for one question and allocates nothing, since a SUBSCRIBE may compare
/// millions of sets.
struct TopicSet {
    enum Level {
        case exact(UnsafeRawBufferPointer)
        /// `+`
        case single
        /// `#`, always the last level.
        case multi

        var isWildcard: Bool {
            switch self {
            case .exact: false
            case .single, .multi: true
            }
        }

        var beginsWithDollar: Bool {
            switch self {
            case .exact(let text): text.first == TopicPattern.dollar
            case .single, .multi: false
            }
        }
    }

    fileprivate struct Filter {
        let text: UnsafeRawBufferPointer
        /// The names for the placeholders of a rule; `nil` for a client's filter, which has none.
        let names: TopicPattern.Names?
        /// True when a wildcard at the first level also matches topics that begin with `$`. In a
        /// client's filter it never does [MQTT-4.7.2-1].
        let reachesDollar: Bool
    }

    private let filter: Filter
    /// A second filter; the set holds the topics that both match.
    private let other: Filter?

    /// `filter` must be well formed: wildcards are whole levels and `#` is the last one. `names`
    /// are given for a rule's filter, see ``TopicPattern``. A placeholder without a name acts as
    /// `#`.
    init(
        filter: UnsafeRawBufferPointer, names: TopicPattern.Names? = nil, reachesDollar: Bool
    ) {
        self.filter = Filter(text: filter, names: names, reachesDollar: reachesDollar)
        other = nil
    }

    private init(_ filter: Filter, and other: Filter) {
        self.filter = filter
        self.other = other
    }

    private var reachesDollar: Bool { filter.reachesDollar && other?.reachesDollar ?? true }

    /// The levels of one filter that matches the same topics, but for those that begin with `$`.
    var levels: Levels { Levels(filter, other) }

    /// True when every topic of this set is also in the other one.
    func isSubset(of other: TopicSet) -> Bool {
        var own = levels
        var their = other.levels
        var isFirst = true
        while let level = own.next() {
            guard let wanted = their.next() else { return false }
            if isFirst, wanted.isWildcard, !other.reachesDollar,
                level.beginsWithDollar || level.isWildcard && reachesDollar
            {
                return false
            }
            switch (level, wanted) {
            case (_, .multi):
                return true
            case (.multi, .single):
                // A topic has at least one level, so at the beginning `#` and `+/#` are the same.
                guard isFirst, case .multi? = their.next() else { return false }
                return true
            case (.multi, .exact), (.single, .exact):
                return false
            case (.single, .single), (.exact, .single):
                break
            case (.exact(let text), .exact(let wanted)):
                guard text.elementsAreEqual(to: wanted) else { return false }
            }
            isFirst = false
        }
        // The rest of the other filter may only be `#`, which also matches its parent.
        switch their.next() {
        case nil, .multi?: return true
        case .exact?, .single?: return false
        }
    }

    /// The topics that are in both sets, each of one filter; `nil` when there are none. Two filters
    /// never have more in common than one filter can express.
    func intersection(_ other: TopicSet) -> TopicSet? {
        precondition(self.other == nil && other.other == nil, "a set of two filters has a third")
        var own = levels
        var their = other.levels
        var isFirst = true
        while true {
            switch (own.next(), their.next()) {
            case (nil, nil), (nil, .multi?), (.multi?, nil):
                // `#` also matches its parent.
                return TopicSet(filter, and: other.filter)
            case (nil, _?), (_?, nil):
                return nil
            case (let level?, let theirs?):
                if isFirst {
                    if level.beginsWithDollar, theirs.isWildcard, !other.reachesDollar {
                        return nil
                    }
                    if theirs.beginsWithDollar, level.isWildcard, !reachesDollar { return nil }
                    isFirst = false
                }
                switch (level, theirs) {
                case (.multi, _), (_, .multi): return TopicSet(filter, and: other.filter)
                case (.single, _), (_, .single): continue
                case (.exact(let text), .exact(let theirs)):
                    guard text.elementsAreEqual(to: theirs) else { return nil }
                }
            }
        }
    }
}

extension TopicSet {
    /// The levels of a set, in order.
    struct Levels: Sequence, IteratorProtocol {
        private enum Source {
            case first, second, both
        }

        private var first: FilterLevels
        private var second: FilterLevels
        private var source: Source

        fileprivate init(_ filter: Filter, _ other: Filter?) {
            first = FilterLevels(filter)
            second = FilterLevels(other ?? filter)
            source = other == nil ? .first : .both
        }

        mutating func next() -> Level? {
            switch source {
            case .first: return first.next()
            case .second: return second.next()
            case .both: break
            }
            switch (first.next(), second.next()) {
            case (.multi?, let level?):
                source = .second
                return level
            case (let level?, .multi?):
                source = .first
                return level
            case (.single?, let level?), (let level?, .single?), (let level?, .exact?):
                return level
            // The longer filter may continue only with `#`, which also matches its parent.
            case (nil, _), (_, nil):
                return nil
            }
        }
    }

    private struct FilterLevels {
        private let filter: Filter
        private var offset = 0

        init(_ filter: Filter) { self.filter = filter }

        mutating func next() -> Level? {
            guard offset <= filter.text.count else { return nil }
            var end = offset
            while end < filter.text.count, filter.text[end] != TopicPattern.separator { end += 1 }
            let level = UnsafeRawBufferPointer(rebasing: filter.text[offset..<end])
            offset = end + 1
            guard level.count == 1 else { return .exact(level) }
            switch level[0] {
            case TopicPattern.singleLevel: return .single
            case TopicPattern.multiLevel: return .multi
            case TopicPattern.userPlaceholder, TopicPattern.clientPlaceholder:
                guard let names = filter.names else { return .exact(level) }
                guard let name = names[level[0]] else {
                    offset = filter.text.count + 1
                    return .multi
                }
                return .exact(name)
            default: return .exact(level)
            }
        }
    }
}
