import CLinux
import Glibc
import Structures
import Threads

/// The store's writing thread. All batches that wait become one write and one fdatasync.
///
/// It owns the journal and the overlay. A segment's life:
/// ```
/// append, sync, apply … full ─ seal ─> mover ─ moved ─> free for reuse
///        │ a write or a sync fails
///        └─> nothing completes; once a second a fresh segment is tried with all that waits
/// ```
/// A group is applied to the overlay only once it is durable. What a failed segment may have lost
/// is written again to another one, and nothing else knows of it yet.
final class Committer {
    enum Task: Sendable {
        case write(BatchQueue.Batch)
        case read(QueueRead)
        case readDone(UInt64)
        /// The database has this segment, and this many bytes of its pages are in use.
        case moved(segment: UInt64, databaseBytes: Int)
        case spare(SegmentFile?)
        case backup(
            directory: String, files: [BackupFile], reply: @Sendable (StoreFailure?) -> Void)
        case acceptLoss(reply: @Sendable ([String]) -> Void)
        /// No task follows it.
        case close
    }

    /// A frame of the active segment that is not synchronised yet.
    struct Frame {
        var batch: BatchQueue.Batch
        /// Offset of its first byte in the segment's file.
        var offset: UInt32
    }

    /// A read, with the last ticket that was submitted before it.
    struct WaitingRead {
        var request: QueueRead
        var after: UInt64
    }

    let options: DurableStoreOptions
    let directory: String
    let tasks: WorkQueue<Task>
    let movers: WorkQueue<MoverTask>
    let loaders: WorkQueue<LoaderTask>
    let outbox: StoreOutbox
    var journal: Journal
    var overlay: JournalOverlay

    /// Batches that are submitted and not in the active segment.
    var waiting: BatchQueue
    /// Frames of the active segment that are not known to be durable.
    private(set) var unsynced: [Frame] = []
    /// Bytes of those frames.
    private(set) var unsyncedBytes = 0
    private var unsyncedSinceMs: UInt64 = 0
    private var lastTicket: UInt64 = 0
    var waitingReads: [WaitingRead] = []
    var readNumber: UInt64 = 0
    var readsDone: UInt64 = 0
    /// Segments that the database has, each with the last read that may still need it.
    var reusable: [(segment: UInt64, afterRead: UInt64)] = []
    var room: DiskRoom
    let ballast: Ballast
    /// What the moves of the sealed segments take, oldest first.
    var moves: [DiskDemand.Move] = []
    /// By how many bytes the database grows at most by the frames of the active segment.
    var activeGrowth = 0
    /// The growth of all batches that were taken, as the submitter counts it.
    private(set) var submittedGrowth = 0
    /// Bytes of the database's pages that are in use.
    var databaseBytes: Int
    /// Time at which a segment was last sealed before it was full, in milliseconds.
    var sealedEarlyMs: UInt64 = 0
    /// Time of the last commit, in milliseconds.
    var lastCommitMs: UInt64 = 0
    var isFailing = false
    private var nextAttemptMs: UInt64 = 0
    /// Time since which the oldest waiting batch has waited, in microseconds.
    private var waitingSinceUs: UInt64 = 0
    var isClosing = false

    /// Continues the journal that a start has read. Segments that the start found go to the mover.
    init(
        _ recovered: consuming RecoveredJournal, databaseBytes: Int, options: DurableStoreOptions,
        directory: String, tasks: WorkQueue<Task>, movers: WorkQueue<MoverTask>,
        loaders: WorkQueue<LoaderTask>, outbox: StoreOutbox
    ) {
        let sealed = recovered.sealed
        journal = recovered.journal
        overlay = recovered.overlay
        self.options = options
        self.directory = directory
        self.tasks = tasks
        self.movers = movers
        self.loaders = loaders
        self.outbox = outbox
        waiting = BatchQueue(largestFrame: options.journal.segmentBytes / 2)
        self.databaseBytes = databaseBytes
        room = DiskRoom(of: directory, options: options)
        ballast = Ballast(in: directory, options: options)
        activeGrowth = DatabaseGrowth.records(journal.activeBytes)
        for changes in sealed { move(changes) }
        checkRoom(hermes_monotonic_ms())
        requestSpare()
        noteSegments()
    }

    /// Runs until ``Task/close`` has been handled: everything is stored and handed to the mover, or
    /// cannot be.
    ///
    /// - Returns: true if everything was stored.
    func run() -> Bool {
        while true {
            if let isStored = turn(waitMilliseconds: patience) { return isStored }
        }
    }

    /// Handles all tasks that wait and does the work that is due. Sleeps at most `waitMilliseconds`
    /// while there is no task.
    ///
    /// - Returns: `nil` before the last turn; in the last turn, true if everything was stored.
    func turn(waitMilliseconds: Int32) -> Bool? {
        if let taken = tasks.takeAll(waitMilliseconds: waitMilliseconds) {
            for task in taken { take(task) }
        } else {
            isClosing = true
        }
        commit()
        serveReads()
        synchronizeIfDue()
        let now = hermes_monotonic_ms()
        sealEarly(now)
        if room.isDue(now) { checkRoom(now) }
        return isClosing ? end() : nil
    }

    /// Milliseconds to sleep while no task comes; -1 for ever.
    var patience: Int32 {
        let now = hermes_monotonic_ms()
        if isFailing { return nextAttemptMs > now ? Int32(clamping: nextAttemptMs - now) : 0 }
        var due: UInt64?
        func wake(at time: UInt64) { due = min(due ?? time, time) }
        if case .interval(let milliseconds) = options.durability, !unsynced.isEmpty {
            wake(at: unsyncedSinceMs + UInt64(milliseconds))
        }
        if let time = earlySealMs { wake(at: time) }
        if let time = room.nextCheckMs { wake(at: time) }
        return due.map { $0 > now ? Int32(clamping: $0 - now) : 0 } ?? -1
    }

    private func take(_ task: Task) {
        switch task {
        case .write(let batch):
            lastTicket = batch.tickets.upperBound
            if waiting.isEmpty { waitingSinceUs = hermes_monotonic_us() }
            waiting.append(batch)
            submittedGrowth = batch.submitted
            room.take(growth: batch.growth)
        case .read(let request):
            waitingReads.append(WaitingRead(request: request, after: lastTicket))
        case .readDone(let number):
            readsDone = number
            freeSegments()
        case .moved(let segment, let databaseBytes):
            self.databaseBytes = databaseBytes
            moved(segment)
        case .spare(let file): journal.finishSpare(file)
        case .backup(let directory, let files, let reply):
            backUp(to: directory, with: files, reply)
        case .acceptLoss(let reply): reply(acceptLoss())
        case .close: isClosing = true
        }
    }

    // MARK: Writing

    /// Stores all waiting batches, in frames that fit a segment.
    func commit() {
        guard !waiting.isEmpty else { return }
        let now = hermes_monotonic_us()
        if isFailing {
            guard now / 1_000 >= nextAttemptMs else { return }
            nextAttemptMs = now / 1_000 + options.retryMilliseconds
        }
        outbox.commitBegins(atMicroseconds: now)
        defer { outbox.commitEnded() }
        do throws(StoreFailure) {
            while !waiting.isEmpty {
                guard try commitFrame() else { return }
                if isFailing {
                    isFailing = false
                    outbox.update { $0.failure = nil }
                }
            }
        } catch {
            fail(error)
        }
    }

    /// Writes the next frame. False when the database has to catch up first.
    private func commitFrame() throws(StoreFailure) -> Bool {
        let bytes = waiting.frameBytes
        guard bytes > 0 else {
            // These tickets have no records, and all tickets before them are already reported.
            outbox.complete(waiting.takeFrame().tickets, buffers: waiting.takeBuffers()) { _ in }
            return true
        }
        guard try prepareSegment(bytes) else { return false }
        let batch = waiting.takeFrame()
        Failpoint.beforeWrite.reach()
        let appended: AppendedFrame
        do throws(StoreFailure) {
            appended = try append(batch)
        } catch {
            waiting.putBack([batch])
            throw error
        }
        Failpoint.afterWrite.reach()
        if unsynced.isEmpty { unsyncedSinceMs = hermes_monotonic_ms() }
        unsynced.append(Frame(batch: batch, offset: appended.payloadOffset))
        unsyncedBytes += bytes
        if options.durability == .sync || isFailing || unsyncedBytes >= waiting.largestFrame {
            try synchronize()
        } else if !batch.isComplete {
            unsynced[unsynced.count - 1].batch.isComplete = true
            outbox.complete(batch.tickets, buffers: waiting.takeBuffers()) { noteCommit(&$0) }
        }
        return true
    }

    private func append(_ batch: BatchQueue.Batch) throws(StoreFailure) -> AppendedFrame {
        try batch.bytes.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
            try journal.append([UnsafeRawBufferPointer(bytes)])
        }
    }

    /// Synchronises all frames, applies them to the overlay, and completes the tickets that wait
    /// for it.
    func synchronize() throws(StoreFailure) {
        guard !unsynced.isEmpty else { return }
        Failpoint.beforeSync.reach()
        let begin = hermes_monotonic_us()
        try journal.sync()
        let end = hermes_monotonic_us()
        let took = end - begin
        Failpoint.afterSync.reach()
        let (frames, bytes) = (UInt64(unsynced.count), UInt64(unsyncedBytes))
        var tickets: ClosedRange<UInt64>?
        var buffers = waiting.takeBuffers()
        for frame in unsynced {
            apply(frame)
            activeGrowth += frame.batch.growth
            buffers.append(frame.batch.bytes)
            guard !frame.batch.isComplete else { continue }
            let first = (tickets ?? frame.batch.tickets).lowerBound
            tickets = first...frame.batch.tickets.upperBound
        }
        unsynced.removeAll(keepingCapacity: true)
        unsyncedBytes = 0
        lastCommitMs = hermes_monotonic_ms()
        outbox.complete(tickets, buffers: buffers) { figures in
            figures.commits += frames
            figures.committedBytes += bytes
            figures.syncMicroseconds += took
            figures.syncTimes.add(microseconds: took)
            figures.longestSync.add(took, at: MonotonicTime(milliseconds: end / 1_000))
            if tickets != nil { noteCommit(&figures) }
        }
    }

    private func noteCommit(_ figures: inout StoreFigures) {
        let now = hermes_monotonic_us()
        figures.commitTimes.add(microseconds: now - waitingSinceUs)
        figures.longestCommit.add(
            now - waitingSinceUs, at: MonotonicTime(milliseconds: now / 1_000))
    }

    private func apply(_ frame: Frame) {
        do throws(DamagedRecord) {
            try frame.batch.bytes.withUnsafeBufferPointer { (bytes) throws(DamagedRecord) in
                try overlay.apply(UnsafeRawBufferPointer(bytes), at: frame.offset)
            }
        } catch {
            // This process wrote these bytes itself.
            preconditionFailure("the record at byte \(error.offset) of a batch makes no sense")
        }
    }

    private func synchronizeIfDue() {
        guard case .interval(let milliseconds) = options.durability, !unsynced.isEmpty,
            hermes_monotonic_ms() >= unsyncedSinceMs + UInt64(milliseconds)
        else { return }
        do throws(StoreFailure) { try synchronize() } catch { fail(error) }
    }

    /// Handles a failed attempt. Frames that a failed segment may have lost wait again, for a new
    /// segment.
    func fail(_ failure: StoreFailure) {
        if journal.failure != nil {
            waiting.putBack(unsynced.map(\.batch))
            unsynced.removeAll()
            unsyncedBytes = 0
        }
        // Without a batch to write there is nothing to try again.
        isFailing = !waiting.isEmpty
        nextAttemptMs = hermes_monotonic_ms() + options.retryMilliseconds
        outbox.update { figures in
            if isFailing { figures.failure = failure }
            figures.failures += 1
        }
    }

    // MARK: Reading

    /// Hands reads to the loader once everything submitted before them is durable.
    private func serveReads() {
        guard !waitingReads.isEmpty else { return }
        do throws(StoreFailure) { try synchronize() } catch { fail(error) }
        let firstMissing = waiting.firstTicket ?? .max
        let count = waitingReads.prefix { $0.after < firstMissing }.count
        for read in waitingReads[..<count] {
            readNumber += 1
            loaders.post(
                LoaderTask(number: readNumber, read.request, in: overlay, of: journal))
        }
        waitingReads.removeFirst(count)
    }

    // MARK: The end

    /// Moves everything to the database, so that the next start has nothing to replay.
    ///
    /// - Returns: true if everything was stored; `nil` while the database has to catch up first.
    private func end() -> Bool? {
        if isFailing {
            nextAttemptMs = 0
            commit()
        }
        do throws(StoreFailure) { try synchronize() } catch { fail(error) }
        guard isFailing || waiting.isEmpty else { return nil }
        serveReads()
        tasks.close()
        while let rest = tasks.takeAll(waitMilliseconds: 0), !rest.isEmpty {
            for task in rest { take(task) }
        }
        if journal.isNamedByNext(overlay.active.number) {
            // No more is written, so the segment counts as full.
            seal(next: overlay.active.number + 1)
        }
        return waiting.isEmpty
    }
}
