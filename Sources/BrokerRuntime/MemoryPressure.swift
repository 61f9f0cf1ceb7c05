/// How short memory is: each step gives up more than the one before it.
package enum MemoryPressure: UInt8, CaseIterable, Comparable, Sendable {
    case none
    /// Newcomers wait to be accepted, and those whose CONNECT has not been accepted are closed.
    case newcomers
    /// Beside that, unfinished packets have an eighth of their room, and publishers are paused at a
    /// sixteenth of what may wait for its acknowledgement.
    case publishers
    /// Beside that, who does not read what is sent is closed, largest first.
    case readers

    /// A word for status, log and metrics.
    package var name: String {
        switch self {
        case .none: "none"
        case .newcomers: "newcomers"
        case .publishers: "publishers"
        case .readers: "readers"
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// In percent of the limit: it begins there.
    var begin: Int {
        switch self {
        case .none: 0
        case .newcomers: 100
        case .publishers: 105
        case .readers: 110
        }
    }

    /// In percent of the limit: below it ends. A little lower, so that it does not come and go.
    var end: Int { max(0, begin - 5) }

    /// What the next measurement makes of it: up at once to where it is that bad, down only where it has
    /// become better by a little.
    func next(used: Int, limit: Int) -> MemoryPressure {
        let percent = used / max(1, limit / 100)
        let risen = Self.allCases.last { percent >= $0.begin } ?? .none
        let held = Self.allCases.last { $0 <= self && percent >= $0.end } ?? .none
        return max(risen, held)
    }
}
