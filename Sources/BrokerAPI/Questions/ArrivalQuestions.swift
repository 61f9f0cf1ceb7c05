/// The sums over all clients' reports, with the report of one client if there is one.
public struct ShowArrivals: BrokerQuestion {
    public typealias Answer = ArrivalPage

    public let clientID: String

    public init(clientID: String) { self.clientID = clientID }
}

/// The sums over all clients' reports, with some of these in no particular order.
public struct ListArrivals: BrokerQuestion {
    public typealias Answer = ArrivalPage

    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int
    /// True for the reports of clients with losses alone.
    public let withLosses: Bool

    public init(from: UInt32, limit: Int, withLosses: Bool) {
        self.from = from
        self.limit = limit
        self.withLosses = withLosses
    }
}
