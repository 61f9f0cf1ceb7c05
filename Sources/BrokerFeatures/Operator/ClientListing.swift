import Addresses
import BrokerAPI
import BrokerCore
import Structures

/// One page of the client list while it is made: the first clients after a cursor, in the order that
/// was asked for.
///
/// Sessions are unordered, so a page visits all of them, in slices. By client identifier the order is
/// fixed, and a reader of all pages meets each lasting session once. In other orders a session that
/// changes its place meanwhile may be met twice or not at all.
struct ClientListing {
    let query: ClientQuery
    let reply: Reply<ClientPage>
    let prefix: [UInt8]
    let userName: [UInt8]?
    let network: IPNetwork?
    /// False when every client is on a page of the list.
    let isFiltered: Bool
    /// The next session to visit.
    var position: UInt32 = 0
    private var selection: PageSelection<UInt32>

    init(_ query: ClientQuery, reply: @escaping Reply<ClientPage>) {
        self.query = query
        self.reply = reply
        prefix = query.prefix.map { [UInt8]($0.utf8) } ?? []
        userName = query.userName.map { [UInt8]($0.utf8) }
        network = query.address.flatMap { IPNetwork($0) }
        isFiltered =
            query.connected != nil || query.beforeMs != nil || query.fromMs != nil
            || query.protocolVersion != nil || network != nil || !prefix.isEmpty || userName != nil
        selection = PageSelection(
            after: SortKey(query.cursor, isRanked: query.order.isRanked), limit: query.limit)
    }

    /// Keeps the session if it may be on the page.
    mutating func offer(
        _ identifier: UnsafeRawBufferPointer, rank: UInt64, _ session: UInt32, _ hash: KeyedHash
    ) {
        // Rejects most sessions without an allocation.
        if identifier.count <= SortKey.prefixBytes {
            guard selection.mayHold(identifier, rank: rank) else { return }
        }
        selection.offer(SortKey(identifier, rank: rank, hash), session) { _ in }
    }

    /// False when no client of this rank is on the page.
    func mayHold(rank: UInt64) -> Bool { selection.mayHold(rank: rank) }

    /// The page, once all sessions were offered, and whether another page follows.
    mutating func finish() -> (page: [PageSelection<UInt32>.Candidate], hasMore: Bool) {
        selection.finish { _ in }
    }
}

extension ClientQuery.Order {
    /// False for the order by identifier alone.
    var isRanked: Bool { self != .clientID }
}
