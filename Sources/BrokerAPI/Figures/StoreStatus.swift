/// How the durable store does: part of `GET /v1/status`, and shown by `GET /metrics`.
package struct StoreStatus: Codable, Sendable, Equatable {
    /// Why not everything is acknowledged durably, or what an operator has to look at; `nil` when all
    /// is well.
    package var notReadyReason: String?
    /// Groups of writes that were made durable, and their bytes.
    package var commits: UInt64 = 0
    package var committedBytes: UInt64 = 0
    /// Attempts to write or synchronise that failed.
    package var failures: UInt64 = 0
    /// Time spent waiting for the disk, and the longest wait, in microseconds.
    package var syncMicroseconds: UInt64 = 0
    package var longestSyncMicroseconds: UInt64 = 0
    /// The longest time that a group waited for its commit, whatever held it up.
    package var longestCommitMicroseconds: UInt64 = 0
    /// Journal segments moved to the database, messages with them, and segments that wait for it.
    package var movedSegments: UInt64 = 0
    package var movedMessages: UInt64 = 0
    package var waitingSegments = 0
    /// Files on the disk.
    package var journalBytes = 0
    package var databaseBytes = 0
    /// On the file system of the data directory, when it was last asked.
    package var freeBytes: UInt64 = 0
    /// Damaged files and lost parts whose loss nobody has accepted yet, in words.
    package var damage: [String] = []
    /// How far a backup has come; `nil` while none is made.
    package var backupPercent: Int?

    package var isReady: Bool { notReadyReason == nil }
    /// The disk has no room for new messages; no field of the answer.
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
