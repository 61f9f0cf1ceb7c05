/// How a durable store does its work.
public struct DurableStoreOptions: Sendable {
    /// When an acknowledgement may leave.
    public enum Durability: Hashable, Sendable {
        /// After fdatasync.
        case sync
        /// After the write; fdatasync follows within so many milliseconds, at least 1.
        case interval(milliseconds: Int32)
    }

    public var durability: Durability
    public var journal: JournalOptions
    /// New messages wait while the file system has fewer free bytes than this.
    public var reserveBytes: UInt64
    /// Queue positions and messages of one segment that the overlay holds before the next segment is
    /// begun, even if it has room: what bounds the memory.
    public var maxSegmentWeight: Int
    /// After so long without a commit the last ones move to the database too, and leave the memory.
    var idleMilliseconds: UInt64 = 500
    /// Between two attempts while the disk refuses.
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
