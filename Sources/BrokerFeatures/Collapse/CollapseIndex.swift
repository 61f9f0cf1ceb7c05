import BrokerAPI
import BrokerCore
import Store
import Structures

/// Queue positions of messages with a collapse key, by session and key.
///
/// A session has at most one position of a key here: that of its last message. While the position
/// waits, a later message of the key replaces it.
struct CollapseIndex: ~Copyable {
    struct Entry: BitwiseCopyable {
        // The widest first, which leaves no gap.
        let key: UInt128
        let session: UInt64
        var position: UInt64
        /// In eight bytes each: the sequence of the message, and those that it superseded.
        let sequences: CompactBytes
        /// The list of the session, and the neighbours in it; ``noIndex`` without one.
        var list: UInt32 = noIndex
        var before: UInt32 = noIndex
        var after: UInt32 = noIndex
    }

    struct List: BitwiseCopyable {
        let session: UInt64
        var first: UInt32 = noIndex
    }

    /// The mark of messages that a later one may replace (``RoutedMessage/mark``).
    static var mark: UInt32 { 1 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private(set) var entries = Slab<Entry>()
    private var lists = Slab<List>()
    private var byKey = HashIndex()
    private var byPosition = HashIndex()
    private var bySession = HashIndex()
    /// Lists of sessions that have ended.
    private var orphans: [UInt32] = []
    /// The key of the message that is being delivered, with the sequences that its receivers' entries
    /// have.
    var current: (key: UInt128, sequences: [UInt64]) = (0, [])
    /// The identifier of the message that replaces others now; empty without one.
    var replacing: [UInt8] = []

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { entries.count }

    // MARK: Finding

    func find(session: UInt64, key: UInt128) -> UInt32? {
        byKey.find(hash(of: session, key)) {
            entries[$0].session == session && entries[$0].key == key
        }
    }

    func find(session: UInt64, position: UInt64) -> UInt32? {
        byPosition.find(hash(of: session, position)) {
            entries[$0].session == session && entries[$0].position == position
        }
    }

    private func list(of session: UInt64) -> UInt32? {
        bySession.find(hash(of: session)) { lists[$0].session == session }
    }

    /// True when a session has positions here.
    func holds(_ session: UInt64) -> Bool { list(of: session) != nil }

    func sequences(of place: UInt32) -> [UInt64] {
        entries[place].sequences.withBytes { bytes in
            stride(from: 0, to: bytes.count, by: 8).map {
                bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self)
            }
        }
    }

    // MARK: Changes

    /// Adds a position of a key of which the session has none here.
    mutating func add(_ stored: StoredCollapsible, pool: BytePool) {
        let place = entries.insert(
            Entry(
                key: stored.key, session: stored.session, position: stored.position,
                sequences: stored.sequences.withUnsafeBytes { CompactBytes($0, pool: pool) }))
        byKey.insert(hash(of: stored.session, stored.key), place)
        byPosition.insert(hash(of: stored.session, stored.position), place)
        let list = list(of: stored.session) ?? makeList(of: stored.session)
        entries[place].list = list
        entries[place].after = lists[list].first
        if lists[list].first != noIndex { entries[lists[list].first].before = place }
        lists[list].first = place
    }

    private mutating func makeList(of session: UInt64) -> UInt32 {
        let list = lists.insert(List(session: session))
        bySession.insert(hash(of: session), list)
        return list
    }

    mutating func remove(_ place: UInt32, pool: BytePool) {
        let entry = entries[place]
        byKey.remove(hash(of: entry.session, entry.key), place)
        byPosition.remove(hash(of: entry.session, entry.position), place)
        if entry.before == noIndex {
            lists[entry.list].first = entry.after
        } else {
            entries[entry.before].after = entry.after
        }
        if entry.after != noIndex { entries[entry.after].before = entry.before }
        entry.sequences.destroy(in: pool)
        entries.remove(place)
        guard lists[entry.list].first == noIndex, let list = list(of: entry.session),
            list == entry.list
        else { return }
        bySession.remove(hash(of: entry.session), list)
        lists.remove(list)
    }

    /// Changes the position of a waiting message.
    mutating func move(_ session: UInt64, from old: UInt64, to new: UInt64) {
        guard let place = find(session: session, position: old) else { return }
        byPosition.remove(hash(of: session, old), place)
        entries[place].position = new
        byPosition.insert(hash(of: session, new), place)
    }

    // MARK: Ended sessions

    /// Has the positions of a session removed in slices, because it has ended.
    mutating func sessionEnded(_ session: UInt64) {
        guard let list = list(of: session) else { return }
        bySession.remove(hash(of: session), list)
        orphans.append(list)
    }

    var hasOrphans: Bool { !orphans.isEmpty }

    /// Removes up to `most` positions of ended sessions.
    mutating func removeOrphans(most: Int, pool: BytePool) {
        var left = most
        while left > 0, let list = orphans.last {
            left -= 1
            if lists[list].first == noIndex {
                orphans.removeLast()
                lists.remove(list)
            } else {
                remove(lists[list].first, pool: pool)
            }
        }
    }

    // MARK: Hashes

    private func hash(of session: UInt64) -> UInt64 { withUnsafeBytes(of: session) { hash($0) } }

    private func hash(of session: UInt64, _ position: UInt64) -> UInt64 {
        withUnsafeBytes(of: (session, position)) { hash($0) }
    }

    private func hash(of session: UInt64, _ key: UInt128) -> UInt64 {
        withUnsafeBytes(
            of: (session, UInt64(truncatingIfNeeded: key), UInt64(truncatingIfNeeded: key >> 64))
        ) { hash($0) }
    }
}

extension CollapseIndex {
    var figures: [FeatureFigure] {
        [
            .gauge(
                "hermes_collapsible_messages",
                "Queue positions whose message a later one of its collapse key may replace.", count)
        ]
    }
}
