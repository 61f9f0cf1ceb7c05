/// How the durable store does: part of `GET /v1/status`, and shown by `GET /metrics`.
public struct StoreModel: Codable, Sendable, Equatable {
    /// Why not everything is acknowledged durably, or what an operator has to look at; `nil` when all
    /// is well.
    public var notReadyReason: String?
    /// Groups of writes that were made durable, and their bytes.
    public var commits: UInt64 = 0
    public var committedBytes: UInt64 = 0
    /// Attempts to write or synchronise that failed.
    public var failures: UInt64 = 0
    /// Time spent waiting for the disk, and the longest wait, in microseconds.
    public var syncMicroseconds: UInt64 = 0
    public var longestSyncMicroseconds: UInt64 = 0
    /// The longest time that a group waited for its commit, whatever held it up.
    public var longestCommitMicroseconds: UInt64 = 0
    /// Journal segments moved to the database, messages with them, and segments that wait for it.
    public var movedSegments: UInt64 = 0
    public var movedMessages: UInt64 = 0
    public var waitingSegments = 0
    /// Files on the disk.
    public var journalBytes = 0
    public var databaseBytes = 0
    /// On the file system of the data directory, when it was last asked.
    public var freeBytes: UInt64 = 0
    /// Damaged files and lost parts whose loss nobody has accepted yet, in words.
    public var damage: [String] = []
    /// How far a backup has come; `nil` while none is made.
    public var backupPercent: Int?

    public var isReady: Bool { notReadyReason == nil }

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

    public init() {}
}

/// Answer of `GET /readyz` while the broker is ready.
public struct ReadinessModel: Codable, Sendable, Equatable {
    /// "ready".
    public var status: String
    /// "none", "interval" or "sync": what the broker is ready to promise.
    public var durability: String

    public init(status: String, durability: String) {
        self.status = status
        self.durability = durability
    }
}

/// Answer of `POST /v1/store/accept-loss`.
public struct AcceptLossResult: Codable, Sendable, Equatable {
    /// What nobody asks about any more: files as they were called.
    public var accepted: [String]

    public init(accepted: [String]) { self.accepted = accepted }
}

/// Answer of `POST /v1/backup`.
public struct BackupResult: Codable, Sendable, Equatable {
    /// The folder, on the broker's machine, that a broker can be started on.
    public var directory: String

    public init(directory: String) { self.directory = directory }
}
