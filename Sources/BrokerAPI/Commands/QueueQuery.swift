/// The part of a queue for a page.
package struct QueueQuery: Sendable, Equatable {
    package var clientID: String
    /// At most ``PageSize/largest``.
    package var limit: Int
    /// The first position of the page; if it is missing, the next one.
    package var from: UInt64

    package init(clientID: String, limit: Int = PageSize.usual, from: UInt64 = 0) {
        self.clientID = clientID
        self.limit = limit
        self.from = from
    }
}
