import Threads

/// A read on its way: what the overlay knew when it was taken.
struct LoaderTask: Sendable {
    var number: UInt64
    var request: QueueRead
    /// The journal's part, behind the database's.
    var positions: [JournalOverlay.StoredPosition]
    /// The database is asked for positions below this one.
    var databaseBelow: UInt64
    var finished: [ClosedRange<UInt64>]
    var released: [ClosedRange<UInt64>]
    /// The segments that `positions` lie in.
    var segments: [SegmentReader]
}

/// Reads queues for clients that came back, on a thread of its own: a cold disk delays nobody else.
final class QueueLoader {
    private let reader: QueueReader
    private let tasks: WorkQueue<LoaderTask>
    private let outbox: StoreOutbox
    /// Called with a task's number once its segments are not needed any more.
    private let done: @Sendable (UInt64) -> Void

    init(
        reader: consuming QueueReader, tasks: WorkQueue<LoaderTask>, outbox: StoreOutbox,
        done: @escaping @Sendable (UInt64) -> Void
    ) {
        self.reader = reader
        self.tasks = tasks
        self.outbox = outbox
        self.done = done
    }

    func run() {
        while let tasks = tasks.takeAll() {
            for task in tasks {
                outbox.deliver(read(task))
                done(task.number)
            }
        }
    }

    private func read(_ task: LoaderTask) -> QueueSlice {
        var batch = WriteBatch(isRecording: true)
        var failure: StoreFailure?
        var next = task.request.below
        do throws(StoreFailure) {
            next = try read(task, into: &batch)
        } catch {
            failure = error
        }
        return QueueSlice(
            request: task.request, next: next, bytes: batch.takeBytes(leaving: []),
            finished: task.finished, released: task.released, failure: failure)
    }

    /// Where the next read begins.
    private func read(
        _ task: LoaderTask, into batch: inout WriteBatch
    ) throws(StoreFailure) -> UInt64 {
        let request = task.request
        var messages = 0
        var bytes = 0
        if request.from < task.databaseBelow {
            let window = try reader.read(
                session: request.session, from: request.from, below: task.databaseBelow,
                maxMessages: request.maxMessages, maxBytes: request.maxBytes, into: &batch)
            if window.hasMore { return window.next }
            messages = window.messages
            bytes = window.bytes
        }
        for position in task.positions {
            let count = position.content.map { Int($0.topic.count) + Int($0.payload.count) } ?? 0
            guard
                messages == 0
                    || (messages < request.maxMessages && bytes + count <= request.maxBytes)
            else { return position.position }
            try append(position, task, to: &batch)
            messages += 1
            bytes += count
        }
        guard let last = task.positions.last, messages >= request.maxMessages else {
            return request.below
        }
        return last.position + 1
    }

    private func append(
        _ position: JournalOverlay.StoredPosition, _ task: LoaderTask, to batch: inout WriteBatch
    ) throws(StoreFailure) {
        let number = position.content?.number ?? 0
        if let content = position.content {
            let topic = try bytes(of: content.topic, task)
            let payload = try bytes(of: content.payload, task)
            topic.withUnsafeBytes { topic in
                payload.withUnsafeBytes { payload in
                    batch.message(
                        number, topic: topic, payload: payload, qos: content.qos,
                        retain: content.retain, expiresAtMs: content.expiresAtMs)
                }
            }
        } else {
            let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
            batch.message(
                0, topic: nothing, payload: nothing, qos: position.qos, retain: false,
                expiresAtMs: 0)
        }
        batch.queued(
            session: task.request.session, position: position.position, message: number,
            qos: position.qos, retain: position.retain, isInWindow: false)
        if position.isReleased {
            batch.released(session: task.request.session, position: position.position)
        }
    }

    private func bytes(
        of location: SegmentChanges.Location, _ task: LoaderTask
    ) throws(StoreFailure) -> [UInt8] {
        guard let segment = task.segments.first(where: { $0.number == location.segment }) else {
            preconditionFailure("segment \(location.segment) was not kept for a read")
        }
        return try segment.bytes(of: location)
    }
}
