import Glibc

/// Decides whether new messages may be stored, and how many bytes of them.
///
/// A message is taken only while there is room for everything that its way into the database and
/// out of it again needs (docs/decisions/0044): its rows, the write-ahead log of the move, the
/// journal's next file. So all that was taken can always be moved, and the broker can shrink its
/// files and start again, without anybody freeing space for it.
///
/// The room is what the file system has free and what the database's files hold already, whatever
/// part of a move, of a checkpoint or of shrinking is done: bytes that go from one to the other
/// change nothing.
struct DiskRoom {
    private static let intervalMs: UInt64 = 1_000
    /// While new messages wait, the room is looked at more often, so that they wait no longer than
    /// they must.
    private static let shortIntervalMs: UInt64 = 50
    /// A byte of growth takes its room in the database, in the log, and in the journal.
    private static let roomPerGrowth = 4

    private let directory: String
    private let database: String
    private let reserveBytes: Int
    /// The room that the largest message needs. With less, no message is begun.
    private let largestNeed: Int
    /// With less than this left, the broker keeps its files as small as it can.
    private let tightBytes: Int
    private var dueMs: UInt64 = 0
    private var hasChecked = false
    /// Bytes that were left at the last check; negative when the reserve is used.
    private(set) var left = Int.max
    /// The growth of batches that were taken since then.
    private var growthSince = 0
    private(set) var isBelowReserve = false
    /// True when there is so little room that the journal keeps no file too many, and the database
    /// is shrunk at once.
    private(set) var isTight = false

    init(of directory: String, options: DurableStoreOptions) {
        self.directory = directory
        database = "\(directory)/\(DatabaseFile.name)"
        reserveBytes = Int(clamping: options.reserveBytes)
        largestNeed =
            Self.roomPerGrowth * DatabaseGrowth.largePayload(options.largestMessageBytes)
        tightBytes = 4 * options.journal.segmentBytes + 2 * largestNeed
    }

    /// Time of the next check that is due even if nothing is written, in milliseconds; `nil` while
    /// there is room.
    var nextCheckMs: UInt64? { isBelowReserve ? dueMs : nil }

    /// True when there is room for this many bytes beside all that messages may still need.
    func hasRoom(for bytes: Int) -> Bool { left >= largestNeed + bytes }

    /// Notes that a batch was taken whose records may make the database grow by these bytes.
    mutating func take(growth: Int) { growthSince += growth }

    /// True when the room should be looked at: time has passed, or much was taken.
    func isDue(_ now: UInt64) -> Bool { isTight || now >= dueMs || growthSince >= left / 64 }

    /// Looks at the file system, reports to the outbox, and says how much more may be submitted
    /// beyond the first `submitted` bytes of growth, which `demand` includes.
    mutating func check(
        _ now: UInt64, _ demand: DiskDemand, submitted: Int, _ outbox: StoreOutbox
    ) {
        dueMs = now + (isBelowReserve ? Self.shortIntervalMs : Self.intervalMs)
        growthSince = 0
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return }
        let free = Int(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
        let held = Self.size(database) + Self.size(database + "-wal")
        let needed = reserveBytes + demand.bytes
        left = free + held - demand.databaseBytes - needed
        // New messages are taken again only when there is room for some, not for every single one.
        let bound = isBelowReserve ? largestNeed + largestNeed / 2 : largestNeed
        isBelowReserve = left < bound || free < reserveBytes
        // Before the log can be cut, the file grows by what only the log has; and neither the log nor
        // free pages are room for anybody else.
        let pending = max(0, demand.databaseBytes - Self.size(database))
        isTight = min(left, free - pending - needed) < tightBytes
        if isBelowReserve { dueMs = min(dueMs, now + Self.shortIntervalMs) }
        let (isBelow, isTight) = (isBelowReserve, isTight)
        outbox.grant(through: submitted + max(0, left - largestNeed) / Self.roomPerGrowth)
        outbox.isTight = isTight
        outbox.update { figures in
            figures.freeBytes = UInt64(free)
            figures.neededBytes = UInt64(max(0, needed))
            figures.isBelowReserve = isBelow
        }
    }

    private static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}

/// What the broker itself still needs of the file system, for what it has taken.
struct DiskDemand {
    /// One segment's way into the database.
    struct Move: Hashable, Sendable {
        /// The database grows by at most so many bytes.
        var growth = 0
        /// Number of sessions of which the move touches pages that exist already.
        var sessions = 0
        /// Size of the journal's file, which is free afterwards.
        var fileBytes = 0
    }

    /// What a slice of removals or of shrinking, a checkpoint and the start of a broker need beside.
    static let slackBytes = 4 << 20

    /// The moves that are to come, oldest first.
    var moves: [Move]
    /// Bytes of the database's pages that are in use.
    var databaseBytes: Int
    /// Bytes of files that the journal may have to make.
    var journalBytes: Int

    /// Bytes that must be free, or held by free pages of the database or by its log.
    var bytes: Int {
        var (held, most) = (0, 0)
        for move in moves {
            held += move.growth
            most = max(most, held + logBytes(of: move))
            held -= move.fileBytes
        }
        return most + journalBytes + Self.slackBytes
    }

    /// The write-ahead log has each changed page once: those that are new, and at most two for each
    /// session, which cannot be more than there are.
    private func logBytes(of move: Move) -> Int {
        let touched = min(2 * move.sessions * DatabaseFormat.pageBytes, databaseBytes)
        return move.growth + move.growth / 16 + touched
    }
}
