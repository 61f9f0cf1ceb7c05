import BrokerAPI

/// Users whose connections are to be closed, because their passwords have changed or they were
/// removed. Each takes a search of all connections in slices of turns, one after the other.
package struct UserDisconnects {
    package struct Search {
        package let userName: [UInt8]
        package let reply: Reply<Int>
        /// The next connection to look at.
        package var place: UInt32 = 0
        package var closed = 0
    }

    private var searches: [Search] = []

    package var hasWork: Bool { !searches.isEmpty }

    package mutating func add(_ userName: [UInt8], reply: @escaping Reply<Int>) {
        searches.append(Search(userName: userName, reply: reply))
    }

    /// Takes the search under way; ``putBack(_:)`` returns it if it is unfinished.
    package mutating func take() -> Search? { searches.isEmpty ? nil : searches.removeFirst() }

    package mutating func putBack(_ search: Search) { searches.insert(search, at: 0) }

    /// Answers who waits with an error, because the shard stops.
    package mutating func abandonAll() {
        for search in takeAll(&searches) { search.reply(.failure(.stopping)) }
    }
}
