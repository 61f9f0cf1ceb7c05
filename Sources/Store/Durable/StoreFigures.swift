import PlainText
import Structures

/// The state of a durable store, for status, metrics and readiness.
public struct StoreFigures: Sendable {
    /// The reason why nothing can be stored at present; `nil` while the store works.
    public var failure: StoreFailure?
    /// The reason why full segments cannot be moved to the database at present; `nil` while they
    /// can.
    public var moverFailure: StoreFailure?
    /// True when the file system has no room for new messages beside the reserve and what the
    /// broker itself needs.
    public var isBelowReserve = false
    /// True when so many segments wait for the database that no new messages are taken.
    public var isCongested = false
    /// Free bytes of the file system at the last check.
    public var freeBytes: UInt64 = 0
    /// Bytes that the reserve and the broker's own work need before new messages are taken.
    public var neededBytes: UInt64 = 0
    /// Number of frames that were made durable.
    public var commits: UInt64 = 0
    /// Bytes of those frames.
    public var committedBytes: UInt64 = 0
    /// Failed attempts to write or synchronise.
    public var failures: UInt64 = 0
    /// Microseconds spent in fdatasync, in total.
    public var syncMicroseconds: UInt64 = 0
    /// Each fdatasync by its time.
    public var syncTimes = TimeHistogram(.fiftyMicroseconds)
    /// The longest fdatasync of the last minute, in microseconds.
    public var longestSync = RecentMaximum()
    /// Each commit by the time from taking a batch until it was durable, whatever delayed it.
    public var commitTimes = TimeHistogram(.fiftyMicroseconds)
    /// The longest of these times in the last minute, in microseconds.
    public var longestCommit = RecentMaximum()
    /// When these figures were read.
    public var readAt = MonotonicTime(milliseconds: 0)
    /// Microseconds that the current commit has taken so far; 0 when there is none.
    public var currentCommitMicroseconds: UInt64 = 0
    /// Number of segments that were moved to the database.
    public var movedSegments: UInt64 = 0
    /// Number of full segments that wait for the database.
    public var waitingSegments = 0
    public var movedMessages: UInt64 = 0
    public var journalBytes = 0
    public var databaseBytes = 0
    /// Paths of damaged files that were set aside; the operator has to accept the loss.
    public var setAsideFiles: [String] = []
    /// Damage that this start or an earlier one recorded; the operator has to accept the loss.
    public var damageRecords: [String] = []
    /// Reads of pages of the database with flipped bits that their checksums corrected, since the
    /// start.
    public var correctedPages: UInt64 = 0
    /// Progress of the current backup in percent; `nil` without one.
    public var backupPercent: Int?
    /// A commit that takes longer than this means that the disk hangs.
    private static let longestUsualCommitMicroseconds: UInt64 = 5_000_000

    public init() {}

    /// True when new messages can be stored.
    public var isAccepting: Bool { failure == nil && !isBelowReserve && !isCongested }

    /// The longest fdatasync of the last minute.
    public var longestSyncMicroseconds: UInt64 { longestSync.value(at: readAt) }
    /// The longest commit of the last minute; one under way counts.
    public var longestCommitMicroseconds: UInt64 {
        max(longestCommit.value(at: readAt), currentCommitMicroseconds)
    }

    /// True when a commit takes longer than on a working disk.
    public var isHanging: Bool { currentCommitMicroseconds > Self.longestUsualCommitMicroseconds }

    /// The reason, for a person, why the store is not ready: it cannot store everything durably, or
    /// an operator has to act. `nil` when it is ready.
    public var notReadyReason: String? {
        if let failure { return "Nothing can be stored: \(failure)" }
        if isHanging {
            return "The disk has not answered for \(currentCommitMicroseconds / 1_000_000) s: "
                + "acknowledgements wait. Check the disk and the kernel's log."
        }
        if isBelowReserve {
            return "The disk is nearly full (\(freeBytes / 1_048_576) MiB free, and "
                + "\((neededBytes + 1_048_575) / 1_048_576) MiB are the reserve and what the "
                + "broker needs for itself): new messages wait until there is room. Free space on "
                + "the file system of the data directory, or let clients fetch their messages, or "
                + "drop some."
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
        let damage = setAsideFiles.map(VisibleText.quoted) + damageRecords
        guard let first = damage.first else { return nil }
        let more = damage.count > 1 ? ", and \(damage.count - 1) more" : ""
        return
            "Stored data was damaged, and what it held is lost (\(first)\(more)). Look at it with "
            + "hermesctl store check, then run: hermesctl store accept-loss"
    }
}
