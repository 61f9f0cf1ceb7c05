import BrokerAPI

/// The bans in force, and the search for connections that a new one fits.
///
/// The search visits all connections in slices of turns. A table that comes meanwhile begins it anew.
package struct Bans {
    /// Somebody who waits for the end of a search.
    private struct Waiter {
        /// ``closed`` when it began.
        let closedBefore: Int
        let reply: Reply<Int>
    }

    /// `nil` while nobody is banned, so that a CONNECT costs one comparison.
    package private(set) var table: BanTable?
    private var generation: UInt64 = 0
    /// The next connection to look at; `nil` without a search.
    package private(set) var place: UInt32?
    private var waiters: [Waiter] = []
    private var closed = 0

    package init(_ table: BanTable?) {
        generation = table?.generation ?? 0
        self.table = table?.bans.isEmpty == false ? table : nil
    }

    package var isSearching: Bool { place != nil }
    package var count: Int { table?.bans.count ?? 0 }

    /// Puts a table into force, unless a newer one is; `reply` gets the number of connections that
    /// the search closes.
    package mutating func set(_ table: BanTable, reply: @escaping Reply<Int>) {
        if table.generation > generation {
            generation = table.generation
            self.table = table.bans.isEmpty ? nil : table
        }
        waiters.append(Waiter(closedBefore: closed, reply: reply))
        place = 0
    }

    package mutating func noteClosed() { closed += 1 }

    /// The search goes on at this connection; `nil` ends it, and answers who waits.
    package mutating func goOn(at next: UInt32?) {
        place = next
        guard next == nil else { return }
        for waiter in takeAll(&waiters) { waiter.reply(.success(closed - waiter.closedBefore)) }
    }

    /// Answers who waits with an error, because the shard stops.
    package mutating func abandonAll() {
        for waiter in takeAll(&waiters) { waiter.reply(.failure(.stopping)) }
    }
}
