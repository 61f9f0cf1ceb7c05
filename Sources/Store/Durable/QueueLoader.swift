import Threads

/// A read, with everything from the overlay that it needs.
struct LoaderTask: Sendable {
    var number: UInt64
    var request: QueueRead
    /// The positions in the journal, which follow those in the database.
    var positions: [JournalOverlay.StoredPosition]
    /// Positions below this one are read from the database.
    var databaseBelow: UInt64
    var finished: [ClosedRange<UInt64>]
    var released: [ClosedRange<UInt64>]
    /// Readers of the segments that hold the messages of `positions`.
    var segments: [SegmentReader] = []

    /// Copies what the read needs from overlay and journal, which change afterwards.
    init(
        number: UInt64, _ request: QueueRead, in overlay: borrowing JournalOverlay,
        of journal: borrowing Journal
    ) {
        self.number = number
        self.request = request
        positions = overlay.positions(
            of: request.session, from: request.from, below: request.below,
            limit: request.maxMessages)
        databaseBelow = min(overlay.firstPosition(of: request.session) ?? .max, request.below)
        finished = overlay.finished(of: request.session)
        released = overlay.released(of: request.session)
        for position in positions {
            guard let segment = position.content?.topic.segment,
                !segments.contains(where: { $0.number == segment }),
                let reader = journal.reader(of: segment)
            else { continue }
            segments.append(reader)
        }
    }
}

/// Reads queues for clients that have reconnected, on a thread of its own, so that a slow disk
/// delays nobody else.
final class QueueLoader {
    private let reader: QueueReader
    private let directory: String
    private let tasks: WorkQueue<LoaderTask>
    private let outbox: StoreOutbox
    /// Called with a task's number when its segments are no longer needed.
    private let done: @Sendable (UInt64) -> Void
    private var content = SegmentBytes()

    init(
        reader: QueueReader, directory: String, tasks: WorkQueue<LoaderTask>, outbox: StoreOutbox,
        done: @escaping @Sendable (UInt64) -> Void
    ) {
        self.reader = reader
        self.directory = directory
        self.tasks = tasks
        self.outbox = outbox
        self.done = done
    }

    /// Runs until the queue is closed and all its tasks are done.
    func run() {
        while turn(waitMilliseconds: -1) {}
    }

    /// Handles all tasks that wait; false when the queue is closed and empty.
    func turn(waitMilliseconds: Int32) -> Bool {
        guard let tasks = tasks.takeAll(waitMilliseconds: waitMilliseconds) else { return false }
        for task in tasks {
            outbox.deliver(read(task))
            done(task.number)
        }
        return true
    }

    func read(_ task: LoaderTask) -> QueueSlice {
        // The active segment may have grown since the last task.
        content.forget()
        var batch = WriteBatch(isRecording: true)
        var failure: StoreFailure?
        var next = task.request.from
        do throws(StoreFailure) {
            try read(task, into: &batch, &next)
        } catch {
            failure = error
            // A read of the database counts as a whole or not at all.
            if next == task.request.from { batch.clear() }
            if error.kind == .damaged { noteDamage(error) }
        }
        return QueueSlice(
            request: task.request, next: next, bytes: batch.takeBytes(leaving: []),
            released: task.released, failure: failure)
    }

    /// Records damage for the operator, also beyond a restart. The client is not told the reason.
    private func noteDamage(_ failure: StoreFailure) {
        let line = "\(failure)"
        // If the file cannot be written, the figures still show it.
        try? StoredDamage.record([line], in: directory)
        outbox.update { figures in
            if !figures.damageRecords.contains(line) { figures.damageRecords.append(line) }
        }
    }

    /// Reads messages and moves `next` behind those that are in the batch.
    private func read(
        _ task: LoaderTask, into batch: inout WriteBatch, _ next: inout UInt64
    ) throws(StoreFailure) {
        let request = task.request
        var messages = 0
        var bytes = 0
        if request.from < task.databaseBelow {
            let window = try reader.read(
                session: request.session, from: request.from, below: task.databaseBelow,
                without: task.finished, maxMessages: request.maxMessages,
                maxBytes: request.maxBytes, into: &batch)
            next = window.next
            if let damage = window.damage { noteDamage(damage) }
            if window.hasMore { return }
            messages = window.messages
            bytes = window.bytes
        }
        for position in task.positions {
            let count = position.content.map { Int($0.topic.count) + Int($0.payload.count) } ?? 0
            guard
                messages == 0
                    || (messages < request.maxMessages && bytes + count <= request.maxBytes)
            else {
                next = position.position
                return
            }
            try append(position, task, to: &batch)
            next = position.position + 1
            messages += 1
            bytes += count
        }
        // The overlay lists at most `maxMessages` positions; with fewer there are none behind them.
        if task.positions.count < request.maxMessages { next = request.below }
    }

    private func append(
        _ position: JournalOverlay.StoredPosition, _ task: LoaderTask, to batch: inout WriteBatch
    ) throws(StoreFailure) {
        let number = position.content?.number ?? 0
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        if let content = position.content {
            let (topic, payload, messageID) = try read(content, task)
            batch.message(
                number, topic: topic, payload: payload, qos: content.qos, retain: content.retain,
                expiresAtMs: content.expiresAtMs)
            if !messageID.isEmpty { batch.named(number, messageID: messageID) }
        } else {
            batch.message(
                0, topic: nothing, payload: nothing, qos: 0, retain: false, expiresAtMs: 0)
        }
        batch.queued(
            session: task.request.session, position: position.position, message: number,
            qos: position.qos, retain: position.retain, isInWindow: false)
        if !position.shared.isEmpty {
            position.shared.withUnsafeBytes {
                batch.shared(
                    session: task.request.session, position: position.position, filter: $0)
            }
        }
        if position.isReleased {
            batch.released(session: task.request.session, position: position.position)
        }
    }

    /// The parts of a message; valid until the next call. Without an identifier that part is empty.
    private func read(
        _ message: JournalOverlay.Content, _ task: LoaderTask
    ) throws(StoreFailure) -> (
        topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        messageID: UnsafeRawBufferPointer
    ) {
        let run = ContentRun(
            topic: message.topic, payload: message.payload, messageID: message.messageID)
        let number = run.location.segment
        guard let segment = task.segments.first(where: { $0.number == number }) else {
            preconditionFailure("segment \(number) was not kept for a read")
        }
        return run.parts(of: try content.read(run.location, segment))
    }
}
