import HermesTesting
import Synchronization
import Testing

@testable import Store

/// A durable store whose threads a test runs step by step on its own thread, so that it can stop at
/// any step.
final class SteppedStore {
    /// The data directory.
    let path: String
    /// Removes the directory at the end, if the store created it.
    private let folder: DurableFolder?
    let store: DurableStore
    let committer: Committer
    let mover: Mover
    let loader: QueueLoader
    let wakeCount = WakeCount()
    /// Reported tickets, in order.
    private(set) var completed: [UInt64] = []
    private(set) var slices: [QueueSlice] = []
    private(set) var batch: WriteBatch
    /// The content restored at the start.
    let restored: ModelVisitor

    /// Opens a store in a folder, restores its content, and starts it.
    convenience init(
        in folder: DurableFolder, options: DurableStoreOptions = .small()
    ) throws {
        try self.init(at: folder.path, folder: folder, options: options)
    }

    init(
        at path: String, folder: DurableFolder? = nil, options: DurableStoreOptions = .small()
    ) throws {
        self.path = path
        self.folder = folder
        let wakeCount = wakeCount
        store = try DurableStore(directory: path, options: options) { wakeCount.add() }
        var visitor = ModelVisitor()
        try store.restore(&visitor)
        restored = visitor
        let workers = try store.makeWorkers()
        committer = workers.committer
        mover = workers.mover
        loader = workers.loader
        batch = WriteBatch(isRecording: true)
    }

    var lastTicket: UInt64 { batch.lastTicket }

    func submit(_ program: inout RecordProgram, groups: Int) {
        for _ in 0..<groups { program.addGroup(to: &batch) }
        store.submit(&batch)
    }

    func submit(_ records: [StoreRecord]) {
        for record in records { batch.append(record) }
        _ = batch.commit()
        store.submit(&batch)
    }

    /// Submits a message for a session; the first message is preceded by a record that creates the
    /// session.
    func submit(message number: UInt64, for session: UInt64 = 1, payload: Int = 100) {
        let start: [StoreRecord] =
            number == 1 ? [.session(session, clientID: [1], userName: nil)] : []
        submit(
            start + [
                .message(
                    number, topic: [97], payload: testPayload(number, payload), qos: 1,
                    retain: false, expiresAtMs: 0),
                .queued(
                    session: session, position: number, message: number, qos: 1, retain: false,
                    isInWindow: true),
            ])
    }

    @discardableResult
    func commit() -> Bool? {
        let outcome = committer.turn(waitMilliseconds: 0)
        takeCompletions()
        return outcome
    }

    func move() { mover.turn(waitMilliseconds: 0) }

    func load() {
        _ = loader.turn(waitMilliseconds: 0)
        store.takeSlices(&slices)
    }

    func read(_ request: QueueRead) throws -> QueueSlice {
        store.read(request)
        commit()
        load()
        let answer = slices.popLast()
        let slice = try #require(answer)
        #expect(slice.request == request)
        return slice
    }

    /// The restored content, with the queues as read now; `nil` if its sums are wrong. Counts are
    /// inexact if the journal may acknowledge unknown positions.
    func restoredModel(countsAreExact: Bool = true) throws -> StoreModel? {
        var model = restored.model
        let isReplayed = store.recovery.report.frameCount > 0
        for (session, waiting) in restored.waiting {
            var request = wholeQueue
            request.session = session
            request.maxMessages = 7
            var queue: [UInt64: StoreModel.Row] = [:]
            while request.from < request.below {
                let slice = try read(request)
                if let failure = slice.failure { throw failure }
                slice.forEachRow { queue[$0] = $1 }
                request.from = slice.next
            }
            model.sessions[session]?.queue = queue
            guard let found = model.sessions[session] else { return nil }
            // What the journal alone releases may be among them.
            let told = (restored.expiries[session] ?? [:]).filter {
                queue[$0.key]?.isReleased != true
            }
            if told != found.expiries { return nil }
            if countsAreExact || !isReplayed, waiting.messages != queue.count { return nil }
            if !isReplayed, waiting.bytes != found.waitingBytes { return nil }
        }
        return model
    }

    /// Runs each thread in turn until nothing is left to do.
    func settle() {
        for _ in 0..<64 {
            commit()
            move()
            load()
        }
    }

    /// Ends the threads one after the other; true if no work is left.
    func close() -> Bool {
        store.tasks.post(.close)
        var isStored: Bool?
        for _ in 0..<1_000 where isStored == nil {
            isStored = commit()
            move()
        }
        store.loaders.close()
        loader.run()
        store.takeSlices(&slices)
        store.movers.close()
        return mover.run() && isStored == true
    }

    private func takeCompletions() {
        var ranges: [ClosedRange<UInt64>] = []
        store.takeCompletions(&ranges)
        for range in ranges { completed += range }
    }
}

/// Counts wake-ups of the submitter.
final class WakeCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }
    func add() { count.add(1, ordering: .sequentiallyConsistent) }
}

extension DurableStoreOptions {
    /// Segments of 64 KiB, no reserve, immediate retries, and no action by time alone.
    static func small(
        _ durability: Durability = .sync, segmentCount: Int = 3
    ) -> DurableStoreOptions {
        var options = DurableStoreOptions(
            durability: durability,
            journal: JournalOptions(segmentBytes: 65_536, segmentCount: segmentCount),
            reserveBytes: 0)
        options.retryMilliseconds = 0
        options.idleMilliseconds = 3_600_000
        return options
    }
}

/// Bytes that identify their message.
func testPayload(_ number: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number &* 31 &+ UInt64($0) &* 7) }
}
