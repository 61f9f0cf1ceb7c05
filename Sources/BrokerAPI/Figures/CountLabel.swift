/// A reason or limit with a counter; raw values begin with 0.
public protocol CountLabel: CaseIterable, RawRepresentable<UInt8>, Sendable {
    /// A word of lower-case letters, digits, `_` and `.`, for tables, logs and metrics.
    var name: String { get }
}

/// One count for each case.
public struct Counts<Label: CountLabel>: Sendable {
    private var counts = [UInt64](repeating: 0, count: Label.allCases.count)

    public init() {}

    public mutating func add(_ label: Label, _ number: UInt64 = 1) {
        counts[Int(label.rawValue)] += number
    }

    public subscript(label: Label) -> UInt64 { counts[Int(label.rawValue)] }

    /// In the order of the cases.
    public var figures: [BrokerFigures.Count] {
        Label.allCases.map { BrokerFigures.Count($0.name, self[$0]) }
    }
}
