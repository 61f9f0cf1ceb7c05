/// The state of a durable store, for status, metrics and readiness.
public struct StoreFigures: Sendable {
    /// Why nothing is stored at present; `nil` while all is well.
    public var failure: StoreFailure?
    /// Why full segments cannot be moved to the database at present.
    public var moverFailure: StoreFailure?
    /// The file system has less room than the reserve.
    public var isBelowReserve = false
    /// So much waits for the database that new messages have to wait.
    public var isCongested = false
    /// Bytes free on the file system, when it was last asked.
    public var freeBytes: UInt64 = 0
    /// Groups of writes that were made durable, and their bytes.
    public var commits: UInt64 = 0
    public var committedBytes: UInt64 = 0
    /// Failed attempts to write or synchronise.
    public var failures: UInt64 = 0
    /// Time spent waiting for the disk, in microseconds, and the longest wait.
    public var syncMicroseconds: UInt64 = 0
    public var longestSyncMicroseconds: UInt64 = 0
    /// The longest time from taking a group until it was durable, whatever held it up.
    public var longestCommitMicroseconds: UInt64 = 0
    /// How long the group that is being written has taken so far; 0 when there is none.
    public var currentCommitMicroseconds: UInt64 = 0
    /// Segments moved to the database, and those that wait for it.
    public var movedSegments: UInt64 = 0
    public var waitingSegments = 0
    public var movedMessages: UInt64 = 0
    public var journalBytes = 0
    public var databaseBytes = 0
    /// Files with damage that were set aside, by name; the operator has to accept the loss.
    public var setAsideFiles: [String] = []
    /// What was found damaged or missing, by this start or an earlier one; the same.
    public var damageRecords: [String] = []
    /// How far the backup has come that is being made; `nil` while there is none.
    public var backupPercent: Int?
    /// Only a hanging disk takes so long for a group.
    private static let longestUsualCommitMicroseconds: UInt64 = 5_000_000

    public init() {}

    /// Whether new messages can be stored at present.
    public var isAccepting: Bool { failure == nil && !isBelowReserve && !isCongested }

    /// The disk keeps a group waiting for longer than a working one would.
    public var isHanging: Bool { currentCommitMicroseconds > Self.longestUsualCommitMicroseconds }

    /// Whether everything is acknowledged durably and nothing waits for an operator; otherwise why
    /// not, in words for a person.
    public var notReadyReason: String? {
        if let failure { return "Nothing can be stored: \(failure)" }
        if isHanging {
            return "The disk has not answered for \(currentCommitMicroseconds / 1_000_000) s: "
                + "acknowledgements wait. Check the disk and the kernel's log."
        }
        if isBelowReserve {
            return "The disk is nearly full (\(freeBytes / 1_048_576) MiB free): new messages wait "
                + "until there is room. Free space on the file system of the data directory."
        }
        if let moverFailure {
            return "The journal cannot be moved to the database: \(moverFailure)"
                + (isCongested ? " New messages wait." : "")
        }
        if isCongested {
            return "The database does not keep up with the journal: new messages wait."
        }
        return damageReason
    }

    private var damageReason: String? {
        let damage = setAsideFiles.map(StoreFailure.quoted) + damageRecords
        guard let first = damage.first else { return nil }
        let more = damage.count > 1 ? ", and \(damage.count - 1) more" : ""
        return
            "Stored data was damaged, and what it held is lost (\(first)\(more)). Look at it with "
            + "hermesctl store check, then run: hermesctl store accept-loss"
    }
}
