/// The subscriptions to list.
public struct SubscriptionQuery: Sendable, Equatable {
    /// Lists the subscriptions of this client alone; `nil` for all.
    public var clientID: String?
    /// Prefix of the topic filters; empty for all.
    public var prefix: String
    /// 0, or the `next` of the previous page.
    public var from: UInt64
    /// At most ``PageSize/largest``.
    public var limit: Int

    public init(clientID: String? = nil, prefix: String = "", from: UInt64 = 0, limit: Int) {
        self.clientID = clientID
        self.prefix = prefix
        self.from = from
        self.limit = limit
    }
}

/// The retained messages to list.
public struct RetainedQuery: Sendable, Equatable {
    /// A topic filter that MQTT allows.
    public var filter: String
    /// At most ``PageSize/largest``.
    public var limit: Int
    /// The `next` of the previous page.
    public var cursor: String?

    public init(filter: String = "#", limit: Int = PageSize.usual, cursor: String? = nil) {
        self.filter = filter
        self.limit = limit
        self.cursor = cursor
    }
}
