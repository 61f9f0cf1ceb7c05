import BrokerAPI
import Glibc
import Structures

/// One page of the client list while it is made: the first clients after a cursor, ordered by the
/// bytes of their identifiers.
///
/// Sessions are unordered, so a page visits all of them, in slices. The sort order is fixed: a
/// reader of all pages meets each lasting session once.
struct ClientListing {
    /// A session with its sort key and index.
    struct Candidate {
        var key: [UInt8]
        var session: UInt32
    }

    /// Longer identifiers sort by this prefix and their hash, so that a cursor fits into a URL.
    static let prefixBytes = 256

    let query: ClientQuery
    let reply: Reply<ClientPage>
    let prefix: [UInt8]
    let userName: [UInt8]?
    /// The next session to visit.
    var position: UInt32 = 0
    private let after: [UInt8]
    /// One more than the page holds, to know whether another page follows.
    private let capacity: Int
    private var candidates: [Candidate] = []
    /// Keys from this one on are not on the page.
    private var bound: [UInt8]?

    init(_ query: ClientQuery, reply: @escaping Reply<ClientPage>) {
        precondition(query.limit > 0, "a page of \(query.limit) clients")
        self.query = query
        self.reply = reply
        prefix = query.prefix.map { [UInt8]($0.utf8) } ?? []
        userName = query.userName.map { [UInt8]($0.utf8) }
        after = query.cursor.flatMap { ClientCursor(text: $0) }?.key ?? []
        capacity = query.limit + 1
    }

    /// The zero byte that ends a prefix occurs in no identifier [MQTT-1.5.3-2].
    static func key(_ identifier: UnsafeRawBufferPointer, _ hash: KeyedHash) -> [UInt8] {
        guard identifier.count > prefixBytes else { return [UInt8](identifier) }
        var key = [UInt8](identifier[..<prefixBytes])
        key.append(0)
        withUnsafeBytes(of: hash(identifier).bigEndian) { key.append(contentsOf: $0) }
        return key
    }

    /// Keeps the session if it may be on the page.
    mutating func offer(
        _ identifier: UnsafeRawBufferPointer, _ session: UInt32, _ hash: KeyedHash
    ) {
        // Rejects most sessions without an allocation.
        if identifier.count <= Self.prefixBytes, !mayHold(identifier) { return }
        let key = Self.key(identifier, hash)
        guard key.withUnsafeBytes({ mayHold($0) }) else { return }
        candidates.append(Candidate(key: key, session: session))
        if candidates.count == 2 * capacity { cut() }
    }

    /// The page, once all sessions were offered, and whether another page follows.
    mutating func finish() -> (page: [Candidate], hasMore: Bool) {
        cut()
        let page = Array(candidates.prefix(query.limit))
        return (page, candidates.count > page.count)
    }

    private func mayHold(_ key: UnsafeRawBufferPointer) -> Bool {
        guard after.withUnsafeBytes({ Self.precedes($0, key) }) else { return false }
        guard let bound else { return true }
        return bound.withUnsafeBytes { Self.precedes(key, $0) }
    }

    private static func precedes(
        _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
    ) -> Bool {
        let common = min(left.count, right.count)
        if common > 0, let first = left.baseAddress, let second = right.baseAddress {
            let order = memcmp(first, second, common)
            if order != 0 { return order < 0 }
        }
        return left.count < right.count
    }

    private mutating func cut() {
        candidates.sort { $0.key.lexicographicallyPrecedes($1.key) }
        guard candidates.count >= capacity else { return }
        candidates.removeLast(candidates.count - capacity)
        bound = candidates[capacity - 1].key
    }
}
