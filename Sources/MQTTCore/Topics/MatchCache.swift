import Structures

/// Caches the subscribers of recently published topics: a table of fixed size with one topic per
/// slot, where a new topic replaces the old one.
struct MatchCache: ~Copyable {
    struct Entry: BitwiseCopyable {
        var hash: UInt64
        var version: UInt64
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
        entries.initialize(
            repeating: Entry(
                hash: 0, version: 0, count: 0, withheld: 0, topic: CompactBytes(), matches: nil),
            count: Self.entryCount)
    }

    deinit { entries.deallocate() }

    func find(
        _ topic: UnsafeRawBufferPointer, hash: UInt64, version: UInt64
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        let entry = entries + Int(hash & UInt64(Self.entryCount - 1))
        guard entry.pointee.hash == hash, entry.pointee.version == version,
            entry.pointee.topic.equals(topic)
        else { return nil }
        return UnsafeBufferPointer(start: entry.pointee.matches, count: Int(entry.pointee.count))
    }

    /// ``Entry/withheld`` of the entry that ``find(_:hash:version:)`` has just returned for this
    /// hash.
    func withheld(hash: UInt64) -> UInt32 {
        entries[Int(hash & UInt64(Self.entryCount - 1))].withheld
    }

    func store(
        _ topic: UnsafeRawBufferPointer, hash: UInt64, version: UInt64,
        _ matches: UnsafeBufferPointer<SubscriptionTrie.Match>, withheld: UInt32 = 0
    ) {
        guard matches.count <= Self.largestResult, topic.count <= Self.longestTopic else { return }
        let entry = entries + Int(hash & UInt64(Self.entryCount - 1))
        let stride = MemoryLayout<SubscriptionTrie.Match>.stride
        if let old = entry.pointee.matches {
            pool.deallocate(UnsafeMutableRawPointer(old), count: Int(entry.pointee.count) * stride)
        }
        entry.pointee.topic.destroy(in: pool)
        var copy: UnsafeMutablePointer<SubscriptionTrie.Match>?
        if let base = matches.baseAddress, matches.count > 0 {
            let buffer = pool.allocate(matches.count * stride)
                .bindMemory(to: SubscriptionTrie.Match.self, capacity: matches.count)
            buffer.initialize(from: base, count: matches.count)
            copy = buffer
        }
        entry.pointee = Entry(
            hash: hash, version: version, count: UInt32(matches.count), withheld: withheld,
            topic: CompactBytes(topic, pool: pool), matches: copy)
    }
}
