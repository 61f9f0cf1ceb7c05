import CLinux
import Glibc
import Threads

/// The store's writing thread: everything that waits becomes one write and one fdatasync.
///
/// It owns the journal and the overlay. Its life with a segment:
/// ```
/// append, sync, apply … full ─ seal ─> mover ─ moved ─> free for reuse
///        │ a write or a sync fails
///        └─> nothing completes; once a second a fresh segment is tried with all that waits
/// ```
/// The overlay learns of a group when it is on the disk and not before: what a failed segment may
/// have lost is written again elsewhere, and nothing else knows of it yet.
final class Committer {
    enum Task: Sendable {
        case write(BatchQueue.Batch)
        case read(QueueRead)
        case readDone(UInt64)
        case moved(segment: UInt64)
        case spare(SegmentFile?)
        case backup(directory: String, reply: @Sendable (StoreFailure?) -> Void)
        case acceptLoss(reply: @Sendable ([String]) -> Void)
        /// Nothing is submitted after it.
        case close
    }

    /// A frame of the active segment that no sync has covered.
    private struct Frame {
        var batch: BatchQueue.Batch
        /// Of its first byte in the segment's file.
        var offset: UInt32
    }

    /// A read with the last ticket that was submitted before it.
    private struct WaitingRead {
        var request: QueueRead
        var after: UInt64
    }

    /// Between two looks at the room on the disk.
    private static let roomCheckMs: UInt64 = 1_000

    private let options: DurableStoreOptions
    private let directory: String
    private let tasks: WorkQueue<Task>
    private let movers: WorkQueue<MoverTask>
    private let loaders: WorkQueue<LoaderTask>
    private let outbox: StoreOutbox
    private(set) var journal: Journal
    private(set) var overlay: JournalOverlay

    /// Submitted, and not in the active segment.
    private var waiting: BatchQueue
    /// In the active segment, and not known to be on the disk; their bytes.
    private var unsynced: [Frame] = []
    private(set) var unsyncedBytes = 0
    private var unsyncedSinceMs: UInt64 = 0
    private var lastTicket: UInt64 = 0
    private var waitingReads: [WaitingRead] = []
    private var readNumber: UInt64 = 0
    private var readsDone: UInt64 = 0
    /// Moved segments, with the last read that may still need them.
    private var reusable: [(segment: UInt64, afterRead: UInt64)] = []
    private var nextRoomCheckMs: UInt64 = 0
    private var isBelowReserve = false
    private var isFailing = false
    private var nextAttemptMs: UInt64 = 0
    /// When the last attempt to commit began, in microseconds.
    private var commitBegin: UInt64 = 0
    private var isClosing = false

    /// Goes on where a start has left the journal; what it found there goes to the mover.
    init(
        _ recovered: consuming RecoveredJournal, options: DurableStoreOptions, directory: String,
        tasks: WorkQueue<Task>,
        movers: WorkQueue<MoverTask>, loaders: WorkQueue<LoaderTask>, outbox: StoreOutbox
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
        for changes in sealed { move(changes) }
        checkRoomIfDue(hermes_monotonic_ms())
        requestSpare()
        noteSegments()
    }

    /// Ends after ``Task/close``, when all that waits is stored and handed to the mover, or cannot be.
    ///
    /// - Returns: whether everything was stored.
    func run() -> Bool {
        while true {
            if let isStored = turn(waitMilliseconds: patience) { return isStored }
        }
    }

    /// Takes all tasks that wait, after sleeping at most so long while there are none, and does what
    /// is due.
    ///
    /// - Returns: in the last turn, whether everything was stored.
    func turn(waitMilliseconds: Int32) -> Bool? {
        if let taken = tasks.takeAll(waitMilliseconds: waitMilliseconds) {
            for task in taken { take(task) }
        } else {
            isClosing = true
        }
        commit()
        serveReads()
        synchronizeIfDue()
        checkRoomIfDue(hermes_monotonic_ms())
        return isClosing ? end() : nil
    }

    /// How long to sleep when no task comes, in milliseconds.
    var patience: Int32 {
        let now = hermes_monotonic_ms()
        func until(_ time: UInt64) -> Int32 { time > now ? Int32(clamping: time - now) : 0 }
        if isFailing { return until(nextAttemptMs) }
        if case .interval(let milliseconds) = options.durability, !unsynced.isEmpty {
            return until(unsyncedSinceMs + UInt64(milliseconds))
        }
        return isBelowReserve ? until(nextRoomCheckMs) : -1
    }

    private func take(_ task: Task) {
        switch task {
        case .write(let batch):
            lastTicket = batch.tickets.upperBound
            waiting.append(batch)
        case .read(let request):
            waitingReads.append(WaitingRead(request: request, after: lastTicket))
        case .readDone(let number):
            readsDone = number
            freeSegments()
        case .moved(let segment):
            overlay.applied(segment)
            reusable.append((segment, readNumber))
            freeSegments()
            noteSegments()
        case .spare(let file): journal.finishSpare(file)
        case .backup(let directory, let reply): backUp(to: directory, reply)
        case .acceptLoss(let reply): reply(acceptLoss())
        case .close: isClosing = true
        }
    }

    /// What cannot be renamed is damage still.
    private func acceptLoss() -> [String] {
        var accepted = journal.acceptLoss()
        if let path = try? StoredDamage.acceptRecords(in: directory) { accepted.append(path) }
        if let left = try? StoredDamage(in: directory) {
            outbox.update { $0.damageRecords = left.records }
        }
        noteSegments()
        return accepted
    }

    /// Lets the mover copy the database once it has all that is stored now.
    private func backUp(
        to directory: String, _ reply: @escaping @Sendable (StoreFailure?) -> Void
    ) {
        guard !isClosing else { return reply(MoverTask.stopping(directory)) }
        commit()
        guard waiting.isEmpty else {
            reply(
                outbox.figures.failure
                    ?? StoreFailure(
                        operation: "back up to", path: directory,
                        reason: "the database does not keep up with the journal at present",
                        kind: .other, cure: "Try again later."))
            return
        }
        do throws(StoreFailure) {
            if !overlay.isActiveEmpty || !unsynced.isEmpty { try beginSegment(1) }
        } catch {
            fail(error)
            return reply(error)
        }
        movers.post(.backup(directory: directory, reply: reply))
    }

    // MARK: Writing

    /// Makes all that waits durable, in frames that fit a segment.
    private func commit() {
        guard !waiting.isEmpty else { return }
        commitBegin = hermes_monotonic_us()
        if isFailing {
            guard commitBegin / 1_000 >= nextAttemptMs else { return }
            nextAttemptMs = commitBegin / 1_000 + options.retryMilliseconds
        }
        outbox.commitBegins(atMicroseconds: commitBegin)
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

    /// False when the database has to catch up first.
    private func commitFrame() throws(StoreFailure) -> Bool {
        let bytes = waiting.frameBytes
        guard bytes > 0 else {
            // Tickets for nothing; all before them are reported.
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

    /// Makes all frames durable, tells the overlay of them, and completes those that wait for it.
    private func synchronize() throws(StoreFailure) {
        guard !unsynced.isEmpty else { return }
        Failpoint.beforeSync.reach()
        let begin = hermes_monotonic_us()
        try journal.sync()
        let took = hermes_monotonic_us() - begin
        Failpoint.afterSync.reach()
        let (frames, bytes) = (UInt64(unsynced.count), UInt64(unsyncedBytes))
        var tickets: ClosedRange<UInt64>?
        var buffers = waiting.takeBuffers()
        for frame in unsynced {
            apply(frame)
            buffers.append(frame.batch.bytes)
            guard !frame.batch.isComplete else { continue }
            let first = (tickets ?? frame.batch.tickets).lowerBound
            tickets = first...frame.batch.tickets.upperBound
        }
        unsynced.removeAll(keepingCapacity: true)
        unsyncedBytes = 0
        outbox.complete(tickets, buffers: buffers) { figures in
            figures.commits += frames
            figures.committedBytes += bytes
            figures.syncMicroseconds += took
            figures.longestSyncMicroseconds = max(figures.longestSyncMicroseconds, took)
            if tickets != nil { noteCommit(&figures) }
        }
    }

    private func noteCommit(_ figures: inout StoreFigures) {
        let took = hermes_monotonic_us() - commitBegin
        figures.longestCommitMicroseconds = max(figures.longestCommitMicroseconds, took)
    }

    private func apply(_ frame: Frame) {
        do throws(DamagedRecord) {
            try frame.batch.bytes.withUnsafeBufferPointer { (bytes) throws(DamagedRecord) in
                try overlay.apply(UnsafeRawBufferPointer(bytes), at: frame.offset)
            }
        } catch {
            // The shard wrote these bytes itself.
            preconditionFailure("the record at byte \(error.offset) of a batch makes no sense")
        }
    }

    private func synchronizeIfDue() {
        guard case .interval(let milliseconds) = options.durability, !unsynced.isEmpty,
            hermes_monotonic_ms() >= unsyncedSinceMs + UInt64(milliseconds)
        else { return }
        do throws(StoreFailure) { try synchronize() } catch { fail(error) }
    }

    /// An attempt failed: what the journal may have lost waits again, for a fresh segment.
    private func fail(_ failure: StoreFailure) {
        if journal.failure != nil {
            waiting.putBack(unsynced.map(\.batch))
            unsynced.removeAll()
            unsyncedBytes = 0
        }
        // Without anything to write there is nothing to try again.
        isFailing = !waiting.isEmpty
        nextAttemptMs = hermes_monotonic_ms() + options.retryMilliseconds
        outbox.update { figures in
            if isFailing { figures.failure = failure }
            figures.failures += 1
        }
    }

    // MARK: Segments

    /// A segment with room for so many bytes; false when too many wait for the database.
    private func prepareSegment(_ bytes: Int) throws(StoreFailure) -> Bool {
        if journal.failure == nil, !journal.isFull(for: bytes),
            overlay.activeWeight < options.maxSegmentWeight
        {
            return true
        }
        // Full ones, those that a read holds, and those that failed.
        guard journal.segmentNumbers.count <= 2 * options.journal.segmentCount else {
            return false
        }
        try beginSegment(bytes)
        return true
    }

    private func beginSegment(_ bytes: Int) throws(StoreFailure) {
        if journal.failure == nil {
            try synchronize()
            try journal.beginSegment(payloadBytes: bytes)
        } else {
            try journal.restart(payloadBytes: bytes)
        }
        guard let number = journal.activeSegment else {
            preconditionFailure("a journal without a segment after it began one")
        }
        seal(next: number)
        requestSpare()
        noteSegments()
    }

    /// Hands the former segment to the mover, unless nothing was synced to it.
    private func seal(next number: UInt64) {
        let former = overlay.active.number
        guard journal.isNamedByNext(former) else {
            overlay.skip(to: number)
            // Unless it is freed with those before it: a disk that goes on failing must not fill up
            // with segments that nothing was written to.
            if overlay.sealed.isEmpty { reusable.append((former, readNumber)) }
            freeSegments()
            return
        }
        // Also if it has changed nothing: a start that finds a segment named wants to have it.
        move(overlay.seal(next: number))
    }

    private func move(_ changes: SegmentChanges) {
        guard let reader = journal.reader(of: changes.segment) else {
            preconditionFailure("segment \(changes.segment) was freed before it was moved")
        }
        movers.post(.apply(changes, reader))
    }

    /// A file for the segment after this one, made while this one fills.
    private func requestSpare() {
        if let request = journal.spareRequest() { movers.post(.spare(request)) }
    }

    private func freeSegments() {
        while let first = reusable.first, first.afterRead <= readsDone {
            journal.free(through: first.segment)
            reusable.removeFirst()
        }
    }

    private func noteSegments() {
        // New messages wait before acknowledgements have to, and before more files are needed.
        let isCongested = overlay.sealed.count >= max(2, options.journal.segmentCount - 1)
        outbox.update { figures in
            figures.isCongested = isCongested
            figures.waitingSegments = overlay.sealed.count
            figures.journalBytes = journal.diskBytes
            figures.setAsideFiles = journal.setAsideFiles
        }
    }

    // MARK: Reading

    /// Hands reads to the loader once everything that was submitted before them is written.
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

    // MARK: Room

    private func checkRoomIfDue(_ now: UInt64) {
        guard now >= nextRoomCheckMs else { return }
        nextRoomCheckMs = now + Self.roomCheckMs
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        isBelowReserve = free < options.reserveBytes
        outbox.update { figures in
            figures.freeBytes = free
            figures.isBelowReserve = isBelowReserve
        }
    }

    // MARK: The end

    /// Moves everything to the database, so that the next start has nothing to replay.
    ///
    /// - Returns: whether everything was stored; `nil` while the database has to catch up first.
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
            // Nothing is written any more: the segment is full as it is.
            seal(next: overlay.active.number + 1)
        }
        return waiting.isEmpty
    }
}
