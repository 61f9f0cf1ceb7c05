/// The state of the durable store, for `GET /v1/status` and `GET /metrics`.
package struct StoreStatus: Codable, Sendable, Equatable {
    /// The reason why storing fails, or damage that needs an operator; `nil` when all is well.
    package var notReadyReason: String?
    /// Groups of records made durable, and their bytes.
    package var commits: UInt64 = 0
    package var committedBytes: UInt64 = 0
    /// Failed writes and syncs.
    package var failures: UInt64 = 0
    /// Time spent waiting for the disk, and the longest wait, in microseconds.
    package var syncMicroseconds: UInt64 = 0
    package var longestSyncMicroseconds: UInt64 = 0
    /// The longest time between submission and commit of a group.
    package var longestCommitMicroseconds: UInt64 = 0
    /// Journal segments moved to the database, their messages, and segments that wait to be moved.
    package var movedSegments: UInt64 = 0
    package var movedMessages: UInt64 = 0
    package var waitingSegments = 0
    /// Files on the disk.
    package var journalBytes = 0
    package var databaseBytes = 0
    /// Free space on the data directory's file system, when last checked.
    package var freeBytes: UInt64 = 0
    /// Damaged files and lost parts, in words, until an operator accepts the loss.
    package var damage: [String] = []
    /// Progress of the backup; `nil` when none is running.
    package var backupPercent: Int?

    package var isReady: Bool { notReadyReason == nil }
    /// True when the disk has no space for new messages; not part of the answer.
    package var isFull = false

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
        case journalBytes = "journal_bytes"
        case databaseBytes = "database_bytes"
        case freeBytes = "free_bytes"
        case damage
        case backupPercent = "backup_percent"
    }

    package init() {}
}
