import CLinux
import Glibc
import Threads

enum MoverTask: Sendable {
    /// A full segment's changes, not sorted, and the segment that their content lies in.
    case apply(SegmentChanges, SegmentReader)
    /// A file for the journal, made ahead of time.
    case spare(SpareRequest)
    /// A copy of the database with all segments that were handed over before.
    case backup(directory: String, reply: @Sendable (StoreFailure?) -> Void)

    /// Why a backup is refused or given up at the end.
    static func stopping(_ directory: String) -> StoreFailure {
        StoreFailure(
            operation: "back up to", path: directory, reason: "the broker stops", kind: .other,
            cure: "Back up the stopped broker's data directory, or try again once it runs.")
    }
}

/// Moves what survived its journal segment into the database, on a thread of its own.
///
/// A backup and what keeps the files small go on in slices between the segments.
final class Mover {
    enum Report: Sendable {
        case moved(segment: UInt64)
        case spare(SegmentFile?)
    }

    private struct Segment {
        let changes: SegmentChanges
        let reader: SegmentReader
    }

    private struct BackupRequest {
        let directory: String
        let reply: @Sendable (StoreFailure?) -> Void
        /// The last segment that has to be in it; 0 is none.
        let segment: UInt64
    }

    /// How long no segment comes before the files are tidied up.
    private static let idleMilliseconds: UInt64 = 500

    let database: Database
    /// How long it waits before it tries again what the disk refused.
    private let retryMilliseconds: UInt64
    private let tasks: WorkQueue<MoverTask>
    private let outbox: StoreOutbox
    private let report: @Sendable (Report) -> Void
    private var content = SegmentBytes()
    private var segments: [Segment] = []
    private var backups: [BackupRequest] = []
    /// The copy that is being made, for the first of `backups`.
    private var copy: DatabaseBackup?
    /// What it is made in.
    private var folder: BackupFolder?
    /// Pages may be free, and the log may have content.
    private var hasUpkeep = true
    /// Until then more segments may come, whose pages the same checkpoint can write.
    private var upkeepAfterMs: UInt64 = 0
    /// Nothing is written to the database before this time, for it refused.
    private var nextAttemptMs: UInt64 = 0
    private var isClosed = false

    init(
        database: Database, retryMilliseconds: UInt64, tasks: WorkQueue<MoverTask>,
        outbox: StoreOutbox, report: @escaping @Sendable (Report) -> Void
    ) {
        self.database = database
        self.retryMilliseconds = retryMilliseconds
        self.tasks = tasks
        self.outbox = outbox
        self.report = report
    }

    /// Ends when the queue is closed and all segments are moved, or cannot be.
    ///
    /// - Returns: whether the database has everything.
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

    /// Takes all tasks that wait, after sleeping at most so long while there are none, and does one
    /// slice of each kind of work.
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
                // At once, for the committer makes it itself if it comes too late.
                report(.spare(try? request.make()))
            case .backup(let directory, let reply):
                backups.append(
                    BackupRequest(
                        directory: directory, reply: reply,
                        segment: segments.last?.changes.segment ?? 0))
            }
        }
    }

    /// How long to sleep when no task comes, in milliseconds.
    private var patience: Int32 {
        let hasWork = !segments.isEmpty || !backups.isEmpty
        guard hasWork || hasUpkeep else { return -1 }
        let due = max(nextAttemptMs, hasWork ? 0 : upkeepAfterMs)
        let now = hermes_monotonic_ms()
        return due > now ? Int32(clamping: due - now) : 0
    }

    // MARK: Segments

    private func moveNext() {
        guard let segment = segments.first else { return }
        Failpoint.beforeMove.reach()
        defer { content.forget() }
        do throws(StoreFailure) {
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
        outbox.update { figures in
            figures.moverFailure = nil
            figures.movedSegments += 1
            figures.movedMessages += UInt64(segment.changes.queued.count)
            if let sizes { figures.databaseBytes = sizes.file + sizes.writeAheadLog }
        }
        report(.moved(segment: segment.changes.segment))
        hasUpkeep = true
        upkeepAfterMs = hermes_monotonic_ms() + Self.idleMilliseconds
        // Under a load that never pauses there is no other time for it.
        if let sizes, sizes.writeAheadLog >= Database.largestIdleLog { checkpoint() }
    }

    /// The journal keeps what could not be moved, until the next attempt.
    private func refused(_ failure: StoreFailure) {
        nextAttemptMs = hermes_monotonic_ms() + retryMilliseconds
        outbox.update { $0.moverFailure = failure }
    }

    // MARK: Upkeep

    /// One slice of giving space back, or the end of it.
    private func upkeep() {
        guard hasUpkeep, hermes_monotonic_ms() >= upkeepAfterMs else { return }
        do throws(StoreFailure) {
            if try database.reclaim() { return }
        } catch {
            return refused(error)
        }
        checkpoint()
        // What the load before has left free goes back to the system.
        guard !hasUpkeep else { return }
        database.releaseMemory()
        hermes_trim_heap()
    }

    private func checkpoint() {
        do throws(StoreFailure) {
            // What a reader holds back follows with the next segment.
            try database.checkpoint()
            hasUpkeep = false
            outbox.update { $0.moverFailure = nil }
        } catch {
            refused(error)
        }
    }

    // MARK: Backup

    /// The next pages of the copy that is being made, once the database has what belongs in it.
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
                copy = try DatabaseBackup(of: database, to: backup.directory)
            }
        } catch {
            finishBackup(error)
        }
    }

    private func finishBackup(_ failure: StoreFailure?) {
        // First the copy goes, if it is not whole, and then the folder, if it is our own.
        copy = nil
        if failure == nil { folder?.keep() }
        folder = nil
        outbox.update { $0.backupPercent = nil }
        backups.removeFirst().reply(failure)
    }
}
