import BrokerAPI
import Structures

extension Shard {
    /// Sessions that one turn looks at for lists of clients, so that a million of them stall nobody.
    private static var listedPerTurn: Int { 8_192 }

    /// Begins a page of clients; `reply` is called with it in a step of ``continueListings(address:)``,
    /// or with an error when the shard stops. Pages are made one after the other.
    package mutating func listClients(
        _ query: ClientQuery, reply: @escaping Reply<ClientPage>
    ) {
        listings.append(ClientListing(query, reply: reply))
    }

    /// A slice of the lists that were asked for.
    package mutating func continueListings(address: (Handle) -> String) {
        var steps = Self.listedPerTurn
        while steps > 0, !listings.isEmpty {
            var listing = listings.removeFirst()
            let begin = listing.position
            let end = min(sessions.endIndex, begin + UInt32(steps))
            while listing.position < end {
                let index = listing.position
                listing.position += 1
                guard matches(listing, index) else { continue }
                sessions[index].clientIdentifier.withBytes { listing.offer($0, index, hash) }
            }
            // An empty slab takes a step too, so that this ends.
            steps -= max(1, Int(listing.position - begin))
            guard listing.position >= sessions.endIndex else {
                listings.insert(listing, at: 0)
                return
            }
            finish(&listing, address)
        }
    }

    private func finish(_ listing: inout ClientListing, _ address: (Handle) -> String) {
        let (page, hasMore) = listing.finish()
        var clients: [ClientSummary] = []
        clients.reserveCapacity(page.count)
        for candidate in page {
            // Who was gone by a later turn is not on the page.
            guard let index = session(of: candidate), matches(listing, index) else { continue }
            clients.append(summary(index, address))
        }
        let next = hasMore ? page.last.map { ClientCursor(key: $0.key).text } : nil
        listing.reply(.success(ClientPage(clients: clients, next: next)))
    }

    private func session(of candidate: ClientListing.Candidate) -> UInt32? {
        guard candidate.key.count > ClientListing.prefixBytes else {
            return candidate.key.withUnsafeBytes { findSession($0) }
        }
        let identifier = sessions[candidate.session].clientIdentifier
        guard sessions[candidate.session].generation != 0,
            identifier.withBytes({ ClientListing.key($0, hash) }) == candidate.key
        else { return nil }
        return candidate.session
    }

    private func matches(_ listing: ClientListing, _ index: UInt32) -> Bool {
        guard sessions[index].generation != 0 else { return false }
        if let connected = listing.query.connected,
            connected != (sessions[index].connection != nil)
        {
            return false
        }
        if !listing.prefix.isEmpty {
            let starts = sessions[index].clientIdentifier.withBytes {
                $0.starts(with: listing.prefix)
            }
            guard starts else { return false }
        }
        guard let userName = listing.userName else { return true }
        return sessions[index].hasUserName
            && userName.withUnsafeBytes { sessions[index].userName.equals($0) }
    }
}
