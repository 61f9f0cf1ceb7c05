/// The degrees of memory shortage; each includes the reactions of those before it.
package enum MemoryPressure: UInt8, CaseIterable, Comparable, Sendable {
    case none
    /// New connections wait to be accepted, and those without CONNACK are closed.
    case newcomers
    /// Incomplete packets get an eighth of their bound, and publishers a sixteenth of theirs.
    case publishers
    /// Connections that do not read are closed, largest unsent output first.
    case readers

    /// The name in status, log and metrics.
    package var name: String {
        switch self {
        case .none: "none"
        case .newcomers: "newcomers"
        case .publishers: "publishers"
        case .readers: "readers"
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// Percent of the limit at which the degree begins.
    var begin: Int {
        switch self {
        case .none: 0
        case .newcomers: 100
        case .publishers: 105
        case .readers: 110
        }
    }

    /// Percent of the limit below which it ends; lower, so that it does not flap.
    var end: Int { max(0, begin - 5) }

    /// ``end`` in bytes.
    func endBytes(of limit: Int) -> Int { limit / 100 * end }

    /// The degree after a measurement: rises at once, falls only below ``end``.
    func next(used: Int, limit: Int) -> MemoryPressure {
        let percent = used / max(1, limit / 100)
        let risen = Self.allCases.last { percent >= $0.begin } ?? .none
        let held = Self.allCases.last { $0 <= self && percent >= $0.end } ?? .none
        return max(risen, held)
    }
}
