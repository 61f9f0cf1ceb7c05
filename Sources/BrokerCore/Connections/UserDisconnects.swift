import BrokerAPI

/// Users whose connections are to be closed, because their passwords have changed or they were
/// removed. Each takes a search of all connections in slices of turns, one after the other.
struct UserDisconnects {
    struct Search {
        let userName: [UInt8]
        let reply: Reply<Int>
        /// The next connection to look at.
        var place: UInt32 = 0
        var closed = 0
    }

    private var searches: [Search] = []

    var hasWork: Bool { !searches.isEmpty }

    mutating func add(_ userName: [UInt8], reply: @escaping Reply<Int>) {
        searches.append(Search(userName: userName, reply: reply))
    }

    /// Takes the search under way; ``putBack(_:)`` returns it if it is unfinished.
    mutating func take() -> Search? { searches.isEmpty ? nil : searches.removeFirst() }

    mutating func putBack(_ search: Search) { searches.insert(search, at: 0) }

    /// Answers who waits with an error, because the shard stops.
    mutating func abandonAll() {
        for search in takeAll(&searches) { search.reply(.failure(.stopping)) }
    }
}
