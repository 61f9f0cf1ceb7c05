/// Settings of a durable store.
public struct DurableStoreOptions: Sendable {
    /// The time at which an acknowledgement may be sent.
    public enum Durability: Hashable, Sendable {
        /// After fdatasync.
        case sync
        /// After the write; fdatasync follows within this many milliseconds, at least 1.
        case interval(milliseconds: Int32)
    }

    public var durability: Durability
    public var journal: JournalOptions
    /// The store takes no new messages while the file system has fewer free bytes than this, beside
    /// those that the store itself needs.
    public var reserveBytes: UInt64
    /// The largest message that is submitted, in bytes.
    public var largestMessageBytes = 1 << 16
    /// Queue positions and messages of one segment that are kept in memory. At this number the next
    /// segment begins, even if the file has room.
    public var maxSegmentWeight: Int
    /// The tables of the features, whose names a view of the database shows.
    public var factTables: [FactTable] = []
    /// After this time without a commit, the active segment moves to the database too and leaves
    /// the memory.
    var idleMilliseconds: UInt64 = 500
    /// At most once in this time, the active segment moves although it holds little, because it
    /// removes what the database has.
    var removalMilliseconds: UInt64 = 10_000
    /// Time between two attempts while the disk fails.
    var retryMilliseconds: UInt64 = 1_000

    public init(
        durability: Durability = .sync, journal: JournalOptions = JournalOptions(),
        reserveBytes: UInt64 = 64 << 20, maxSegmentWeight: Int = 262_144
    ) {
        self.durability = durability
        self.journal = journal
        self.reserveBytes = reserveBytes
        self.maxSegmentWeight = maxSegmentWeight
    }
}
