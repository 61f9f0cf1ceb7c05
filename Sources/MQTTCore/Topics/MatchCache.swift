import Structures

/// Caches the subscribers of recently published topics: a table of fixed size with one topic per
/// slot, where a new topic replaces the old one.
struct MatchCache: ~Copyable {
    struct Entry: BitwiseCopyable {
        var hash: UInt64
        /// The latest version at which the matches were known to be right; 0 for an unused slot.
        var version: UInt64
        var dependencies = MatchVersions.Dependencies()
        var count: UInt32
        /// Sessions that match and were left out because they may not read the topic.
        var withheld: UInt32
        var topic: CompactBytes
        var matches: UnsafeMutablePointer<SubscriptionTrie.Match>?
    }

    private static var entryCount: Int { 4_096 }
    /// Larger results and longer topics are not cached. With these bounds the whole cache stays
    /// below 40 MiB.
    private static var largestResult: Int { 1_024 }
    private static var longestTopic: Int { 512 }

    private let entries: UnsafeMutablePointer<Entry>
    private let pool: BytePool

    init(pool: BytePool) {
        self.pool = pool
        entries = .allocate(capacity: Self.entryCount)
        entries.initialize(repeating: Self.unused, count: Self.entryCount)
    }

    deinit { entries.deallocate() }

    @inline(__always)
    func find(
        _ topic: UnsafeRawBufferPointer, hash: UInt64, _ versions: borrowing MatchVersions
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        let entry = entry(hash)
        guard entry.pointee.hash == hash,
            entry.pointee.version == versions.latest || refresh(entry, versions),
            entry.pointee.topic.equals(topic)
        else { return nil }
        return UnsafeBufferPointer(start: entry.pointee.matches, count: Int(entry.pointee.count))
    }

    /// Notes that an entry is right at the latest version; false when it is out of date.
    @inline(never)
    private func refresh(
        _ entry: UnsafeMutablePointer<Entry>, _ versions: borrowing MatchVersions
    ) -> Bool {
        guard entry.pointee.version != 0,
            versions.areUnchanged(entry.pointee.dependencies, since: entry.pointee.version)
        else { return false }
        entry.pointee.version = versions.latest
        return true
    }

    private func entry(_ hash: UInt64) -> UnsafeMutablePointer<Entry> {
        entries + Int(hash & UInt64(Self.entryCount - 1))
    }

    /// Drops the match of one topic.
    func remove(_ topic: UnsafeRawBufferPointer, hash: UInt64) {
        let entry = entry(hash)
        guard entry.pointee.hash == hash, entry.pointee.topic.equals(topic) else { return }
        free(entry)
        entry.pointee = Self.unused
    }

    private func free(_ entry: UnsafeMutablePointer<Entry>) {
        if let matches = entry.pointee.matches {
            pool.deallocate(
                UnsafeMutableRawPointer(matches),
                count: Int(entry.pointee.count) * MemoryLayout<SubscriptionTrie.Match>.stride)
        }
        entry.pointee.topic.destroy(in: pool)
    }

    private static var unused: Entry {
        Entry(hash: 0, version: 0, count: 0, withheld: 0, topic: CompactBytes(), matches: nil)
    }

    /// ``Entry/withheld`` of the entry that ``find(_:hash:_:)`` has just returned for this hash.
    func withheld(hash: UInt64) -> UInt32 { entry(hash).pointee.withheld }

    func store(
        _ topic: UnsafeRawBufferPointer, hash: UInt64, _ versions: borrowing MatchVersions,
        _ matches: UnsafeBufferPointer<SubscriptionTrie.Match>, withheld: UInt32 = 0
    ) {
        guard matches.count <= Self.largestResult, topic.count <= Self.longestTopic else { return }
        let entry = entry(hash)
        free(entry)
        let stride = MemoryLayout<SubscriptionTrie.Match>.stride
        var copy: UnsafeMutablePointer<SubscriptionTrie.Match>?
        if let base = matches.baseAddress, matches.count > 0 {
            let buffer = pool.allocate(matches.count * stride)
                .bindMemory(to: SubscriptionTrie.Match.self, capacity: matches.count)
            buffer.initialize(from: base, count: matches.count)
            copy = buffer
        }
        entry.pointee = Entry(
            hash: hash, version: versions.latest, dependencies: versions.dependencies(of: topic),
            count: UInt32(matches.count), withheld: withheld,
            topic: CompactBytes(topic, pool: pool), matches: copy)
    }
}
