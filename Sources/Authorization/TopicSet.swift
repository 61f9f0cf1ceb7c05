/// The topic names that one topic filter matches (section 4.7), as a set to compare with others.
struct TopicSet: Equatable {
    enum Level: Equatable {
        case exact(ArraySlice<UInt8>)
        /// `+`
        case single
        /// `#`, always the last one.
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

    let levels: [Level]
    /// A wildcard at the first level also matches topics that begin with `$`, as filters of clients
    /// never do [MQTT-4.7.2-1].
    let reachesDollar: Bool

    /// `filter` is well formed: wildcards are whole levels, `#` is the last one.
    init(filter: [UInt8], reachesDollar: Bool) {
        let parts = filter.split(
            separator: TopicPattern.separator, omittingEmptySubsequences: false)
        levels = parts.map { part in
            switch Array(part) {
            case [TopicPattern.singleLevel]: .single
            case [TopicPattern.multiLevel]: .multi
            default: .exact(part)
            }
        }
        self.reachesDollar = reachesDollar
    }

    private init(levels: [Level], reachesDollar: Bool) {
        self.levels = levels
        self.reachesDollar = reachesDollar
    }

    /// Whether every topic of this set is in the other one.
    func isSubset(of other: TopicSet) -> Bool {
        if let own = levels.first, let their = other.levels.first {
            if own.beginsWithDollar, their.isWildcard, !other.reachesDollar { return false }
            if own.isWildcard, reachesDollar, their.isWildcard, !other.reachesDollar {
                return false
            }
        }
        var index = 0
        while index < levels.count {
            guard index < other.levels.count else { return false }
            switch (levels[index], other.levels[index]) {
            case (_, .multi):
                return true
            case (.multi, .single):
                // A topic has at least one level, so at the beginning `#` and `+/#` are the same.
                return index == 0 && other.levels.count == 2 && other.levels[1] == .multi
            case (.multi, .exact), (.single, .exact):
                return false
            case (.single, .single), (.exact, .single):
                break
            case (.exact(let own), .exact(let their)):
                guard own == their else { return false }
            }
            index += 1
        }
        // What is left of the other may only be a `#`, which also matches its parent.
        return index == other.levels.count || other.levels[index] == .multi
    }

    /// The topics that are in both; `nil` when there are none. Two filters never have more in common
    /// than one filter can say.
    func intersection(_ other: TopicSet) -> TopicSet? {
        if let own = levels.first, let their = other.levels.first {
            if own.beginsWithDollar, their.isWildcard, !other.reachesDollar { return nil }
            if their.beginsWithDollar, own.isWildcard, !reachesDollar { return nil }
        }
        let both = reachesDollar && other.reachesDollar
        var common: [Level] = []
        var index = 0
        while index < levels.count, index < other.levels.count {
            switch (levels[index], other.levels[index]) {
            case (.multi, _):
                return TopicSet(levels: common + other.levels[index...], reachesDollar: both)
            case (_, .multi):
                return TopicSet(levels: common + levels[index...], reachesDollar: both)
            case (.single, let level), (let level, .single):
                common.append(level)
            case (.exact(let own), .exact(let their)):
                guard own == their else { return nil }
                common.append(levels[index])
            }
            index += 1
        }
        // The longer one goes on: that is possible only with a `#`, which also matches its parent.
        let rest =
            levels[min(index, levels.count)...] + other.levels[min(index, other.levels.count)...]
        guard rest.isEmpty || Array(rest) == [.multi] else { return nil }
        return TopicSet(levels: common, reachesDollar: both)
    }
}
