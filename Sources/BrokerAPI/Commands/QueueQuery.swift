/// Which part of a queue a page shows.
package struct QueueQuery: Sendable, Equatable {
    package var clientID: String
    /// 1 to 1,000.
    package var limit: Int
    /// The position that the page begins at, or the next one there is.
    package var from: UInt64

    package init(clientID: String, limit: Int = 100, from: UInt64 = 0) {
        self.clientID = clientID
        self.limit = limit
        self.from = from
    }
}
