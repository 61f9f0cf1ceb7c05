import Threads

enum MoverTask: Sendable {
    /// A full segment's changes, and the segment that their content lies in.
    case apply(SegmentChanges, SegmentReader)
    /// A file for the journal, made ahead of time.
    case spare(SpareRequest)
    case backup(directory: String, reply: @Sendable (StoreFailure?) -> Void)
}

/// Moves what survived its journal segment into the database, on a thread of its own.
final class Mover {
    enum Report: Sendable {
        case moved(segment: UInt64)
        case spare(SegmentFile?)
    }

    /// How long it waits before it tries again what the disk refused.
    private static let patienceMilliseconds: Int32 = 1_000

    private let database: Database
    private let tasks: WorkQueue<MoverTask>
    private let outbox: StoreOutbox
    private let report: @Sendable (Report) -> Void
    private var content = SegmentBytes()
    private var waiting: [MoverTask] = []
    /// Pages may be free, and the log may have content.
    private var hasUpkeep = true
    private var isClosed = false

    init(
        database: Database, tasks: WorkQueue<MoverTask>, outbox: StoreOutbox,
        report: @escaping @Sendable (Report) -> Void
    ) {
        self.database = database
        self.tasks = tasks
        self.outbox = outbox
        self.report = report
    }

    /// Ends when the queue is closed and all its tasks are done, or cannot be.
    func run() {
        while !isClosed || !waiting.isEmpty {
            takeTasks(waitMilliseconds: waiting.isEmpty && !hasUpkeep ? -1 : 0)
            guard !waiting.isEmpty else {
                if hasUpkeep { upkeep() }
                continue
            }
            guard perform(waiting[0]) else {
                // The journal keeps what could not be moved.
                if isClosed { return }
                takeTasks(waitMilliseconds: Self.patienceMilliseconds)
                continue
            }
            waiting.removeFirst()
        }
        while hasUpkeep { upkeep() }
    }

    private func takeTasks(waitMilliseconds: Int32) {
        if let tasks = tasks.takeAll(waitMilliseconds: waitMilliseconds) {
            waiting += tasks
        } else {
            isClosed = true
        }
    }

    /// False when the task has to be tried again.
    private func perform(_ task: MoverTask) -> Bool {
        switch task {
        case .apply(let changes, let segment): return apply(changes, segment)
        case .spare(let request):
            // Without it the next segment makes its file itself.
            report(.spare(try? request.make()))
            return true
        case .backup(let directory, let reply):
            reply(backup(to: directory))
            return true
        }
    }

    private func apply(_ changes: SegmentChanges, _ segment: SegmentReader) -> Bool {
        Failpoint.beforeMove.reach()
        do throws(StoreFailure) {
            try database.apply(changes) { (location) throws(StoreFailure) in
                try content.read(location, segment)
            }
        } catch {
            outbox.update { $0.moverFailure = error }
            return false
        }
        Failpoint.afterMove.reach()
        let sizes = try? database.sizes()
        outbox.update { figures in
            figures.moverFailure = nil
            figures.movedSegments += 1
            figures.movedMessages += UInt64(changes.queued.count)
            if let sizes { figures.databaseBytes = sizes.file + sizes.writeAheadLog }
        }
        report(.moved(segment: changes.segment))
        hasUpkeep = true
        return true
    }

    /// One slice; what the disk refuses now is tried again after the next segment.
    private func upkeep() {
        do throws(StoreFailure) {
            if try database.reclaim() { return }
            try database.checkpoint()
            hasUpkeep = false
        } catch {
            outbox.update { $0.moverFailure = error }
            hasUpkeep = false
        }
    }

    private func backup(to directory: String) -> StoreFailure? {
        do throws(StoreFailure) {
            let backup = try DatabaseBackup(of: database, to: directory)
            while try !backup.step().isDone {}
            return nil
        } catch {
            return error
        }
    }
}
