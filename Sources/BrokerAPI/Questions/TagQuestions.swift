/// The tags of a client; none for an unknown one.
public struct ShowTags: BrokerQuestion {
    public typealias Answer = [String]

    public let clientID: String

    public init(clientID: String) { self.clientID = clientID }
}

/// Adds and removes tags of a client, which need not have a session; answered once that is stored.
public struct ChangeTags: BrokerQuestion {
    public typealias Answer = TagChange

    public let clientID: String
    public let add: [String]
    public let remove: [String]

    public init(clientID: String, add: [String], remove: [String]) {
        self.clientID = clientID
        self.add = add
        self.remove = remove
    }
}

/// Tags in no particular order.
public struct ListTags: BrokerQuestion {
    public typealias Answer = TagPage

    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int

    public init(from: UInt32, limit: Int) {
        self.from = from
        self.limit = limit
    }
}

/// Clients with a tag in no particular order.
public struct ListTaggedClients: BrokerQuestion {
    public typealias Answer = TaggedClientPage

    public let tag: String
    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int

    public init(tag: String, from: UInt32, limit: Int) {
        self.tag = tag
        self.from = from
        self.limit = limit
    }
}
