import CLinux
import Glibc
import Threads

enum MoverTask: Sendable {
    /// Apply the changes of a full segment, which are not sorted. The reader gives access to their
    /// content.
    case apply(SegmentChanges, SegmentReader)
    /// Create a file for the journal ahead of time.
    case spare(SpareRequest)
    /// Make the files as small as they can be, because the disk is nearly full.
    case makeRoom
    /// Copy the database, with all segments that were handed over before.
    case backup(
        directory: String, files: [BackupFile], reply: @Sendable (StoreFailure?) -> Void)

    /// The failure of a backup that is refused or given up because the broker stops.
    static func stopping(_ directory: String) -> StoreFailure {
        StoreFailure(
            operation: "back up to", path: directory, reason: "the broker stops", kind: .other,
            cure: "Back up the stopped broker's data directory, or try again once it runs.")
    }
}

/// Moves the content of full journal segments into the database, on a thread of its own.
///
/// Between segments it makes backups and keeps the files small, slice by slice.
final class Mover {
    enum Report: Sendable {
        /// The database has this segment, and this many bytes of its pages are in use.
        case moved(segment: UInt64, databaseBytes: Int)
        case spare(SegmentFile?)
    }

    private struct Segment {
        let changes: SegmentChanges
        let reader: SegmentReader
    }

    private struct BackupRequest {
        let directory: String
        let files: [BackupFile]
        let reply: @Sendable (StoreFailure?) -> Void
        /// The last segment that must be in the copy; 0 for none.
        let segment: UInt64
    }

    /// Milliseconds without a new segment before upkeep of the files begins.
    private static let idleMilliseconds: UInt64 = 500

    let database: Database
    private let ballast: Ballast
    /// Milliseconds until the next attempt after a failure.
    private let retryMilliseconds: UInt64
    private let tasks: WorkQueue<MoverTask>
    private let outbox: StoreOutbox
    private let report: @Sendable (Report) -> Void
    private var content = SegmentBytes()
    private var segments: [Segment] = []
    private var backups: [BackupRequest] = []
    /// The copy that is being made, for the first of `backups`.
    private var copy: DatabaseBackup?
    /// The folder of that copy.
    private var folder: BackupFolder?
    /// True when pages may be free or the write-ahead log may have content.
    private var hasUpkeep = true
    /// Upkeep waits until then, since the pages of further segments can be written by the same
    /// checkpoint.
    private var upkeepAfterMs: UInt64 = 0
    /// Nothing is written to the database before this time, because the last attempt failed.
    private var nextAttemptMs: UInt64 = 0
    private var isClosed = false
    /// Bytes of the database's pages that are in use.
    private var databaseBytes = 0

    init(
        database: Database, ballast: Ballast, retryMilliseconds: UInt64,
        tasks: WorkQueue<MoverTask>, outbox: StoreOutbox,
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.database = database
        self.ballast = ballast
        self.retryMilliseconds = retryMilliseconds
        self.tasks = tasks
        self.outbox = outbox
        self.report = report
    }

    /// Runs until the queue is closed and all segments are moved, or cannot be.
    ///
    /// - Returns: true if the database has everything.
    func run() -> Bool {
        while !isClosed { turn(waitMilliseconds: patience) }
        copy = nil
        folder = nil
        for backup in backups { backup.reply(MoverTask.stopping(backup.directory)) }
        nextAttemptMs = 0
        while !segments.isEmpty, nextAttemptMs == 0 { moveNext() }
        if segments.isEmpty, hasUpkeep { checkpoint() }
        return segments.isEmpty
    }

    /// Takes all tasks that wait and does one slice of each kind of work. Sleeps at most
    /// `waitMilliseconds` while there is no task.
    func turn(waitMilliseconds: Int32) {
        takeTasks(waitMilliseconds)
        guard hermes_monotonic_ms() >= nextAttemptMs else { return }
        moveNext()
        if !backups.isEmpty { stepBackup() } else if segments.isEmpty { upkeep() }
    }

    // MARK: Tasks

    private func takeTasks(_ waitMilliseconds: Int32) {
        guard let tasks = tasks.takeAll(waitMilliseconds: waitMilliseconds) else {
            isClosed = true
            return
        }
        for task in tasks {
            switch task {
            case .apply(var changes, let reader):
                changes.sort()
                segments.append(Segment(changes: changes, reader: reader))
            case .spare(let request):
                // Done at once: when it comes too late, the committer creates the file itself.
                report(.spare(try? request.make()))
            case .makeRoom: hasUpkeep = true
            case .backup(let directory, let files, let reply):
                backups.append(
                    BackupRequest(
                        directory: directory, files: files, reply: reply,
                        segment: segments.last?.changes.segment ?? 0))
            }
        }
    }

    /// Milliseconds to sleep while no task comes; -1 for ever.
    private var patience: Int32 {
        let hasWork = !segments.isEmpty || !backups.isEmpty
        guard hasWork || hasUpkeep else { return -1 }
        let due = max(nextAttemptMs, hasWork || outbox.isTight ? 0 : upkeepAfterMs)
        let now = hermes_monotonic_ms()
        return due > now ? Int32(clamping: due - now) : 0
    }

    // MARK: Segments

    private func moveNext() {
        guard let segment = segments.first else { return }
        Failpoint.beforeMove.reach()
        defer { content.forget() }
        do throws(StoreFailure) {
            if outbox.isTight, backups.isEmpty { try removeAhead() }
            try content.preload(segment.changes, segment.reader)
            try database.apply(segment.changes) { (location) throws(StoreFailure) in
                try content.read(location, segment.reader)
            }
        } catch {
            return refused(error)
        }
        Failpoint.afterMove.reach()
        segments.removeFirst()
        let sizes = try? database.sizes()
        if let sizes { databaseBytes = sizes.file - sizes.free }
        outbox.update { figures in
            figures.moverFailure = nil
            figures.movedSegments += 1
            figures.movedMessages += UInt64(segment.changes.queued.count)
            if let sizes { figures.databaseBytes = sizes.file + sizes.writeAheadLog }
        }
        report(.moved(segment: segment.changes.segment, databaseBytes: databaseBytes))
        hasUpkeep = true
        upkeepAfterMs = hermes_monotonic_ms() + Self.idleMilliseconds
        // Under a load without pauses there is no other time for it.
        if let sizes, outbox.isTight || sizes.writeAheadLog >= Database.largestIdleLog {
            checkpoint()
        }
    }

    /// Deletes what the waiting segments end, so that their moves need little room. A backup must
    /// not miss rows that end after it, so this waits for it.
    private func removeAhead() throws(StoreFailure) {
        let slices = try RemovalSlices(of: segments.map(\.changes), in: database)
        while try slices.run() { try database.checkpoint(cuts: true) }
    }

    /// Handles a failure. The journal keeps the segments until the next attempt.
    private func refused(_ failure: StoreFailure) {
        nextAttemptMs = hermes_monotonic_ms() + retryMilliseconds
        if failure.kind == .outOfSpace { giveRoom() }
        outbox.update { $0.moverFailure = failure }
    }

    /// Gives up what takes room beside the data: the ballast, and what the failed attempt has left
    /// in the log. Others have filled the disk, since room for every move was set aside.
    private func giveRoom() {
        ballast.release()
        // The next attempt tells what is wrong.
        _ = try? database.checkpoint(cuts: true)
    }

    // MARK: Upkeep

    /// Gives one slice of free space back, or ends the upkeep.
    private func upkeep() {
        let isTight = outbox.isTight
        guard hasUpkeep, isTight || hermes_monotonic_ms() >= upkeepAfterMs else { return }
        do throws(StoreFailure) {
            defer { noteSizes() }
            if try database.reclaim(keepsSpare: !isTight) { return }
        } catch {
            return refused(error)
        }
        hasUpkeep = false
        // Nothing is left in the log that damage could take from there, or that a program without
        // the checksums of pages could move.
        checkpoint(cuts: true)
        // Memory that the last load needed goes back to the system.
        guard !hasUpkeep else { return }
        database.releaseMemory()
        hermes_trim_heap()
    }

    private func checkpoint(cuts: Bool = false) {
        do throws(StoreFailure) {
            // Pages that a reader holds back follow with the next segment.
            try database.checkpoint(cuts: cuts || outbox.isTight)
            noteSizes()
            outbox.update { $0.moverFailure = nil }
        } catch {
            hasUpkeep = true
            refused(error)
        }
    }

    private func noteSizes() {
        guard let sizes = try? database.sizes() else { return }
        outbox.update { $0.databaseBytes = sizes.file + sizes.writeAheadLog }
    }

    // MARK: Backup

    /// Copies the next pages for a backup, once the database has all segments that belong in it.
    private func stepBackup() {
        guard let backup = backups.first,
            segments.first.map({ $0.changes.segment > backup.segment }) ?? true
        else { return }
        do throws(StoreFailure) {
            if let copy {
                let progress = try copy.step()
                guard !progress.isDone else { return finishBackup(nil) }
                let percent = 100 - 100 * progress.remainingPages / max(1, progress.pages)
                outbox.update { $0.backupPercent = max(0, percent) }
            } else {
                folder = try BackupFolder.prepare(
                    backup.directory, of: database.path, bytes: try database.sizes().file)
                for file in backup.files { try folder?.write(file) }
                copy = try DatabaseBackup(of: database, to: backup.directory)
            }
        } catch {
            finishBackup(error)
        }
    }

    private func finishBackup(_ failure: StoreFailure?) {
        // First the incomplete copy is removed, then the other files, and the folder if the backup
        // created it.
        copy = nil
        if failure == nil { folder?.keep() }
        folder = nil
        outbox.update { $0.backupPercent = nil }
        backups.removeFirst().reply(failure)
    }
}
