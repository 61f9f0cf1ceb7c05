import Testing

/// How a test reaches the broker; every test of a statement runs over each.
enum Transport: CaseIterable, Sendable, CustomTestStringConvertible {
    /// A shard without sockets, on a clock that the test moves.
    case memory
    /// TCP on loopback to a real `hermesd`, which all tests of the process share.
    case tcp

    static var all: [Transport] { allCases }

    var testDescription: String {
        switch self {
        case .memory: "in memory"
        case .tcp: "over TCP"
        }
    }
}

/// Why a test cannot go on; what the broker did wrong is an issue, not an error.
struct ConformanceFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
