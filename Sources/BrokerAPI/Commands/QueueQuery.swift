/// The part of a queue for a page.
public struct QueueQuery: Sendable, Equatable {
    public var clientID: String
    /// At most ``PageSize/largest``.
    public var limit: Int
    /// The first position of the page; if it is missing, the next one.
    public var from: UInt64

    public init(clientID: String, limit: Int = PageSize.usual, from: UInt64 = 0) {
        self.clientID = clientID
        self.limit = limit
        self.from = from
    }
}
