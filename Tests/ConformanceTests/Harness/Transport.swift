import Testing

/// The way to the broker; every test of a statement runs over each.
enum Transport: CaseIterable, Sendable, CustomTestStringConvertible {
    /// A shard without sockets, on a clock that the test advances.
    case memory
    /// TCP on loopback to a real `hermesd`, shared by all tests of the process.
    case tcp
    /// The same, in frames of WebSocket, on another listener of that `hermesd`.
    case webSocket

    static var all: [Transport] { allCases }
    /// For what only frames can break or keep (section 6).
    static var framed: [Transport] { [.webSocket] }

    var testDescription: String {
        switch self {
        case .memory: "in memory"
        case .tcp: "over TCP"
        case .webSocket: "over WebSocket"
        }
    }
}

/// A test cannot continue; errors of the broker are recorded as issues instead.
struct ConformanceFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
