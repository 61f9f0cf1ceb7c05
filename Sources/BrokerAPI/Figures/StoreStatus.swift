import Structures

/// The state of the durable store, for `GET /v1/status` and `GET /metrics`.
public struct StoreStatus: Codable, Sendable, Equatable {
    /// The reason why storing fails, or damage that needs an operator; `nil` when all is well.
    public var notReadyReason: String?
    /// Groups of records made durable, and their bytes.
    public var commits: UInt64 = 0
    public var committedBytes: UInt64 = 0
    /// Failed writes and syncs.
    public var failures: UInt64 = 0
    /// Time spent waiting for the disk, and the longest wait of the last minute, in microseconds.
    public var syncMicroseconds: UInt64 = 0
    public var longestSyncMicroseconds: UInt64 = 0
    /// The longest time between submission and commit of a group in the last minute.
    public var longestCommitMicroseconds: UInt64 = 0
    /// Journal segments moved to the database, their messages, and segments that wait to be moved.
    public var movedSegments: UInt64 = 0
    public var movedMessages: UInt64 = 0
    public var waitingSegments = 0
    /// Reads of the database that found one or two flipped bits in a page, which its checksum
    /// corrected.
    public var correctedPages: UInt64 = 0
    /// Files on the disk.
    public var journalBytes = 0
    public var databaseBytes = 0
    /// Free space on the data directory's file system, when last checked.
    public var freeBytes: UInt64 = 0
    /// Damaged files and lost parts, in words, until an operator accepts the loss.
    public var damage: [String] = []
    /// Progress of the backup; `nil` when none is running.
    public var backupPercent: Int?

    public var isReady: Bool { notReadyReason == nil }
    /// True when the disk has no space for new messages; not part of the answer.
    public var isFull = false
    /// Each commit and each fdatasync by its time; not part of the answer.
    public var commitTimes = TimeHistogram(.fiftyMicroseconds)
    public var syncTimes = TimeHistogram(.fiftyMicroseconds)

    enum CodingKeys: String, CodingKey {
        case notReadyReason = "not_ready_reason"
        case commits
        case committedBytes = "committed_bytes"
        case failures
        case syncMicroseconds = "sync_us"
        case longestSyncMicroseconds = "longest_sync_us"
        case longestCommitMicroseconds = "longest_commit_us"
        case movedSegments = "moved_segments"
        case movedMessages = "moved_messages"
        case waitingSegments = "waiting_segments"
        case correctedPages = "corrected_pages"
        case journalBytes = "journal_bytes"
        case databaseBytes = "database_bytes"
        case freeBytes = "free_bytes"
        case damage
        case backupPercent = "backup_percent"
    }

    public init() {}
}
