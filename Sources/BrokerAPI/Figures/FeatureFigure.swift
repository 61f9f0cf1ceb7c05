/// A figure that a feature counts: the feature alone declares its name, says what it is, and fills
/// it. `GET /metrics` shows it; those of several brokers add up.
public struct FeatureFigure: Sendable, Equatable {
    public enum Kind: Sendable {
        /// Counts up from the start of the process; its name ends in `_total`.
        case counter
        case gauge
    }

    /// Such as `hermes_tag_bytes`; ends in the base unit if there is one.
    public let name: String
    public let kind: Kind
    /// A sentence with its full stop.
    public let help: String
    /// The name of the label by which ``counts`` differ; `nil` for one count without a label.
    public let label: String?
    public let counts: [BrokerFigures.Count]

    public static func gauge(_ name: String, _ help: String, _ value: Int) -> Self {
        Self(
            name: name, kind: .gauge, help: help, label: nil,
            counts: [BrokerFigures.Count("", UInt64(max(0, value)))])
    }

    public static func counter(_ name: String, _ help: String, _ value: UInt64) -> Self {
        Self(
            name: name, kind: .counter, help: help, label: nil,
            counts: [BrokerFigures.Count("", value)])
    }

    /// One count for each case of a fixed set.
    public static func counters(
        _ name: String, by label: String, _ help: String, _ counts: [BrokerFigures.Count]
    ) -> Self {
        Self(name: name, kind: .counter, help: help, label: label, counts: counts)
    }
}
