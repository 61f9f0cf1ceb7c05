/// One walk over the retained messages that a filter matches; it stays valid while messages are
/// added and removed.
///
/// The walk goes through the tree in the order of siblings, a node before those below it. This order
/// never changes, as a new node comes first among its siblings: so all that stays is met once. The
/// walk keeps one position, the next node to look at, whose ancestors have matched the filter's
/// levels; these tell the way on.
public struct RetainedCursor: Sendable {
    public enum Step {
        case message(Message)
        /// The steps of this turn are used up; the walk goes on in a later turn.
        case paused
        case finished
    }

    enum Level: Sendable {
        case exact(Range<Int>)
        case singleLevel
        case multiLevel

        /// True for a level that more than one child may match.
        var isWildcard: Bool {
            switch self {
            case .exact: false
            case .singleLevel, .multiLevel: true
            }
        }
    }

    public let filter: [UInt8]
    private let levels: [Level]
    /// The walk's number in ``WalkPlaces``.
    let walker: UInt32
    /// The next node to look at, and its level, from 0; the root when the walk is finished. They are
    /// out of date once another walk has gone on or a node was removed.
    var node: UInt32
    var depth = 0

    init(filter: [UInt8], levels: [Level], walker: UInt32, at node: UInt32) {
        self.filter = filter
        self.levels = levels
        self.walker = walker
        self.node = node
    }

    /// The filter's level for nodes at this depth; `nil` below the filter's last level. All nodes
    /// below `#` belong to it.
    func level(_ depth: Int) -> Level? {
        if depth < levels.count { return levels[depth] }
        if case .multiLevel? = levels.last { return .multiLevel }
        return nil
    }

    /// True when a node at this depth, which has matched, is an answer: at the last level, below
    /// `#`, and just above it (section 4.7.1.2).
    func isAnswer(at depth: Int) -> Bool {
        if depth >= levels.count - 1 { return true }
        if case .multiLevel = levels[depth + 1] { return true }
        return false
    }

    static func levels(of filter: [UInt8]) -> [Level] {
        var levels: [Level] = []
        var start = 0
        for end in 0...filter.count
        where end == filter.count || filter[end] == TopicTree.separator {
            switch filter[start..<end] {
            case [0x2B]: levels.append(.singleLevel)
            case [0x23]: levels.append(.multiLevel)
            default: levels.append(.exact(start..<end))
            }
            start = end + 1
        }
        return levels
    }
}
