import Addresses
import BrokerAPI
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
    /// The next session to visit.
    var position: UInt32 = 0
    private var selection: PageSelection<UInt32>

    init(_ query: ClientQuery, reply: @escaping Reply<ClientPage>) {
        self.query = query
        self.reply = reply
        prefix = query.prefix.map { [UInt8]($0.utf8) } ?? []
        userName = query.userName.map { [UInt8]($0.utf8) }
        network = query.address.flatMap { IPNetwork($0) }
        selection = PageSelection(
            after: query.cursor.flatMap { ListCursor(text: $0) }?.key ?? [], limit: query.limit)
    }

    /// The sort key of a client. In an order other than by identifier it begins with the client's
    /// rank.
    static func key(
        _ identifier: UnsafeRawBufferPointer, rank: UInt64?, _ hash: KeyedHash
    ) -> [UInt8] {
        let key = ListKey.key(identifier) { hash($0) }
        guard let rank else { return key }
        return withUnsafeBytes(of: rank.bigEndian) { [UInt8]($0) } + key
    }

    /// Keeps the session if it may be on the page.
    mutating func offer(
        _ identifier: UnsafeRawBufferPointer, rank: UInt64?, _ session: UInt32, _ hash: KeyedHash
    ) {
        // Rejects most sessions without an allocation.
        if let rank {
            guard selection.mayHold(rank: rank) else { return }
        } else if identifier.count <= ListKey.prefixBytes {
            guard selection.mayHold(identifier) else { return }
        }
        selection.offer(Self.key(identifier, rank: rank, hash), session) { _ in }
    }

    /// The page, once all sessions were offered, and whether another page follows.
    mutating func finish() -> (page: [PageSelection<UInt32>.Candidate], hasMore: Bool) {
        selection.finish { _ in }
    }
}
