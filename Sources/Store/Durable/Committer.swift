import CLinux
import Glibc
import Threads

/// The store's writing thread: everything that waits becomes one write and one fdatasync.
///
/// It owns the journal and the overlay. Its life with a segment:
/// ```
/// append, sync, apply, complete … full ─ seal ─> mover ─ moved ─> free for reuse
///        │ a write or a sync fails
///        └─> nothing completes; once a second a fresh segment is tried with all that waits
/// ```
final class Committer {
    struct Batch: Sendable {
        var bytes: [UInt8]
        var tickets: ClosedRange<UInt64>
    }

    enum Task: Sendable {
        case write(Batch)
        case read(QueueRead)
        case readDone(UInt64)
        case moved(segment: UInt64)
        case spare(SegmentFile?)
        case backup(directory: String, reply: @Sendable (StoreFailure?) -> Void)
        case acceptLoss(reply: @Sendable ([String]) -> Void)
    }

    /// While the disk refuses, and while its room is below the reserve.
    private static let patienceMilliseconds: Int32 = 1_000
    /// Between two looks at the room on the disk.
    private static let roomCheckMs: UInt64 = 1_000

    private let options: DurableStoreOptions
    private let directory: String
    private let tasks: WorkQueue<Task>
    private let movers: WorkQueue<MoverTask>
    private let loaders: WorkQueue<LoaderTask>
    private let outbox: StoreOutbox
    private var journal: Journal
    private var overlay: JournalOverlay

    private var waiting: [Batch] = []
    /// Reads that wait for what was submitted before them.
    private var waitingReads: [QueueRead] = []
    private var readNumber: UInt64 = 0
    private var readsDone: UInt64 = 0
    /// Moved segments, with the last read that may still need them.
    private var reusable: [(segment: UInt64, afterRead: UInt64)] = []
    private var lastSyncMs: UInt64 = 0
    private var lastRoomCheckMs: UInt64 = 0
    private var isBelowReserve = false
    private var isFailing = false

    /// The journal is replayed and empty, and the database knows all that it held.
    init(
        journal: consuming Journal, overlay: consuming JournalOverlay,
        options: DurableStoreOptions, directory: String, tasks: WorkQueue<Task>,
        movers: WorkQueue<MoverTask>, loaders: WorkQueue<LoaderTask>, outbox: StoreOutbox
    ) {
        self.journal = journal
        self.overlay = overlay
        self.options = options
        self.directory = directory
        self.tasks = tasks
        self.movers = movers
        self.loaders = loaders
        self.outbox = outbox
    }

    /// Ends when the queue is closed and all that waits is stored and moved, or cannot be.
    func run() {
        checkRoom()
        while let taken = tasks.takeAll(waitMilliseconds: patience) {
            for task in taken { take(task) }
            commit()
            serveReads()
            synchronizeIfDue()
            checkRoomIfDue()
        }
        finish()
    }

    private var patience: Int32 {
        if isFailing || isBelowReserve { return Self.patienceMilliseconds }
        guard case .interval(let milliseconds) = options.durability, journal.hasUnsyncedFrames
        else { return -1 }
        return milliseconds
    }

    private func take(_ task: Task) {
        switch task {
        case .write(let batch): waiting.append(batch)
        case .read(let request): waitingReads.append(request)
        case .readDone(let number):
            readsDone = number
            freeSegments()
        case .moved(let segment):
            overlay.applied(segment)
            reusable.append((segment, readNumber))
            freeSegments()
        case .spare(let file): journal.finishSpare(file)
        case .backup(let directory, let reply):
            commit()
            if waiting.isEmpty, sealIfUsed() {
                movers.post(.backup(directory: directory, reply: reply))
            } else {
                reply(outbox.figures.failure)
            }
        case .acceptLoss(let reply):
            reply(journal.acceptLoss())
            noteSegments()
        }
    }

    // MARK: Writing

    /// Makes all that waits durable, in frames that fit a segment.
    private func commit() {
        let begin = hermes_monotonic_us()
        let had = !waiting.isEmpty
        while !waiting.isEmpty {
            do throws(StoreFailure) {
                guard try commitFrame() else { break }
                settle(nil)
            } catch {
                settle(error)
                break
            }
        }
        guard had else { return }
        let took = hermes_monotonic_us() - begin
        outbox.update { figures in
            figures.longestCommitMicroseconds = max(figures.longestCommitMicroseconds, took)
        }
    }

    /// False when the database has to catch up first.
    private func commitFrame() throws(StoreFailure) -> Bool {
        var count = 0
        var bytes = 0
        while count < waiting.count {
            let more = waiting[count].bytes.count
            if count > 0, bytes + more > options.journal.segmentBytes / 2 { break }
            bytes += more
            count += 1
        }
        guard bytes > 0 else {
            complete(count)
            return true
        }
        guard try prepareSegment(bytes) else { return false }
        Failpoint.beforeWrite.reach()
        let frame = try append(count)
        Failpoint.afterWrite.reach()
        if options.durability == .sync { try synchronize() }
        apply(count, frame)
        outbox.update { figures in
            figures.commits += 1
            figures.committedBytes += UInt64(bytes)
        }
        complete(count)
        return true
    }

    private func append(_ count: Int) throws(StoreFailure) -> AppendedFrame {
        // The arrays stay where they are while their contents are written.
        var pieces: [UnsafeRawBufferPointer] = []
        return try Self.withPieces(of: waiting[..<count], &pieces) {
            (pieces) throws(StoreFailure) in
            try journal.append(pieces)
        }
    }

    private static func withPieces<Result>(
        of batches: ArraySlice<Batch>, _ pieces: inout [UnsafeRawBufferPointer],
        _ body: ([UnsafeRawBufferPointer]) throws(StoreFailure) -> Result
    ) throws(StoreFailure) -> Result {
        guard let batch = batches.first else { return try body(pieces) }
        return try batch.bytes.withUnsafeBufferPointer { (bytes) throws(StoreFailure) in
            if !bytes.isEmpty { pieces.append(UnsafeRawBufferPointer(bytes)) }
            return try withPieces(of: batches.dropFirst(), &pieces, body)
        }
    }

    private func synchronize() throws(StoreFailure) {
        Failpoint.beforeSync.reach()
        let begin = hermes_monotonic_us()
        try journal.sync()
        let took = hermes_monotonic_us() - begin
        lastSyncMs = hermes_monotonic_ms()
        Failpoint.afterSync.reach()
        outbox.update { figures in
            figures.syncMicroseconds += took
            figures.longestSyncMicroseconds = max(figures.longestSyncMicroseconds, took)
        }
    }

    /// Tells the overlay what was written.
    private func apply(_ count: Int, _ frame: AppendedFrame) {
        var offset = frame.payloadOffset
        for batch in waiting[..<count] {
            do throws(DamagedRecord) {
                try batch.bytes.withUnsafeBufferPointer { (bytes) throws(DamagedRecord) in
                    try overlay.apply(UnsafeRawBufferPointer(bytes), at: offset)
                }
            } catch {
                // The shard wrote these bytes itself.
                preconditionFailure("no record begins at byte \(error.offset) of a batch")
            }
            offset += UInt32(batch.bytes.count)
        }
    }

    private func complete(_ count: Int) {
        outbox.complete(
            waiting[..<count].map(\.tickets), buffers: waiting[..<count].map(\.bytes))
        waiting.removeFirst(count)
    }

    /// Notes how an attempt ended; said once, when it changes.
    private func settle(_ failure: StoreFailure?) {
        guard let failure else {
            if isFailing { outbox.update { $0.failure = nil } }
            isFailing = false
            return
        }
        isFailing = true
        outbox.update { figures in
            figures.failure = failure
            figures.failures += 1
        }
    }

    private func synchronizeIfDue() {
        guard case .interval(let milliseconds) = options.durability, journal.hasUnsyncedFrames,
            hermes_monotonic_ms() - lastSyncMs >= UInt64(milliseconds)
        else { return }
        do throws(StoreFailure) { try synchronize() } catch { settle(error) }
    }

    // MARK: Segments

    /// A segment with room for so many bytes; false when too many wait for the database.
    private func prepareSegment(_ bytes: Int) throws(StoreFailure) -> Bool {
        if journal.failure == nil, !journal.isFull(for: bytes),
            overlay.activeWeight < options.maxSegmentWeight
        {
            return true
        }
        let isCongested = overlay.sealed.count >= 2 * options.journal.segmentCount
        if isCongested != outbox.figures.isCongested {
            outbox.update { $0.isCongested = isCongested }
        }
        guard !isCongested else { return false }
        try beginSegment(bytes)
        return true
    }

    private func beginSegment(_ bytes: Int) throws(StoreFailure) {
        if journal.failure == nil {
            try journal.beginSegment(payloadBytes: bytes)
        } else {
            try journal.restart(payloadBytes: bytes)
        }
        guard let number = journal.activeSegment else {
            preconditionFailure("a journal without a segment after it began one")
        }
        seal(next: number)
        if let request = journal.spareRequest() { movers.post(.spare(request)) }
    }

    /// Hands the former segment to the mover.
    private func seal(next number: UInt64) {
        let changes = overlay.seal(next: number)
        guard let reader = journal.reader(of: changes.segment) else {
            // It was begun and failed before anything was written.
            overlay.applied(changes.segment)
            return
        }
        movers.post(.apply(changes, reader))
        noteSegments()
    }

    /// Ends the active segment if it holds anything; false when the disk refuses.
    private func sealIfUsed() -> Bool {
        guard overlay.activeWeight > 0 || !overlay.isActiveEmpty else { return true }
        do throws(StoreFailure) {
            try beginSegment(1)
            return true
        } catch {
            settle(error)
            return false
        }
    }

    private func freeSegments() {
        while let first = reusable.first, first.afterRead <= readsDone {
            journal.free(through: first.segment)
            reusable.removeFirst()
        }
        noteSegments()
    }

    private func noteSegments() {
        let isCongested = overlay.sealed.count >= 2 * options.journal.segmentCount
        outbox.update { figures in
            figures.waitingSegments = overlay.sealed.count
            figures.journalBytes = journal.diskBytes
            figures.setAsideFiles = journal.setAsideFiles
            if !isCongested { figures.isCongested = false }
        }
    }

    // MARK: Reading

    /// Hands reads to the loader once everything that was submitted before them is written.
    private func serveReads() {
        guard waiting.isEmpty, !waitingReads.isEmpty else { return }
        for request in waitingReads {
            let first = overlay.firstPosition(of: request.session) ?? .max
            let positions = overlay.positions(
                of: request.session, from: request.from, below: request.below,
                limit: request.maxMessages)
            var segments: [SegmentReader] = []
            for position in positions {
                guard let number = position.content?.topic.segment,
                    !segments.contains(where: { $0.number == number }),
                    let reader = journal.reader(of: number)
                else { continue }
                segments.append(reader)
            }
            readNumber += 1
            loaders.post(
                LoaderTask(
                    number: readNumber, request: request, positions: positions,
                    databaseBelow: min(first, request.below),
                    finished: overlay.finished(of: request.session),
                    released: overlay.released(of: request.session), segments: segments))
        }
        waitingReads.removeAll(keepingCapacity: true)
    }

    // MARK: Room

    private func checkRoomIfDue() {
        let now = hermes_monotonic_ms()
        guard now - lastRoomCheckMs >= Self.roomCheckMs else { return }
        lastRoomCheckMs = now
        checkRoom()
    }

    private func checkRoom() {
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
    private func finish() {
        commit()
        if waiting.isEmpty { _ = sealIfUsed() }
        movers.close()
        loaders.close()
    }
}
