/// One instance for each content: the clients of a company mostly have the same lists, with `%u`
/// for what differs.
public struct SharedAllowances: Sendable {
    private var known: [TopicAllowance] = []
    private var oldest = 0

    /// More contents than that are not shared.
    private static let capacity = 64

    public init() {}

    /// The instance that is known with this content; this one, which is then known, without one.
    public mutating func shared(_ allowance: TopicAllowance) -> TopicAllowance {
        if let known = known.first(where: { $0.isEquivalent(to: allowance) }) { return known }
        if known.count < Self.capacity {
            known.append(allowance)
        } else {
            known[oldest] = allowance
            oldest = (oldest + 1) % Self.capacity
        }
        return allowance
    }
}
