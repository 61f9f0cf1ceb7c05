import BrokerAPI

extension BrokerFigures {
    /// The only count of a feature's figure; `nil` without a figure of that name.
    package func feature(_ name: String) -> UInt64? {
        features.first { $0.name == name }?.counts.first?.value
    }
}
