import CLinux
import Threads

/// The durable store: a journal that makes acknowledgements cheap, in front of a database that keeps
/// what lives long.
///
/// Four threads share the work, and no state: whoever submits (a shard), the ``Committer``, the
/// ``Mover`` and the ``QueueLoader``. See docs/durability.md.
public final class DurableStore: Store, @unchecked Sendable {
    let tasks: WorkQueue<Committer.Task>
    let movers: WorkQueue<MoverTask>
    let loaders: WorkQueue<LoaderTask>
    /// What the committer and the mover achieved, in the end: whether nothing is left.
    private let ended: WorkQueue<Bool>
    private let outbox: StoreOutbox
    private let directory: String
    private let options: DurableStoreOptions
    /// Until ``start()`` they belong to the thread that opened the store.
    private var database: Database?
    private var recovered: RecoveredJournal?
    private var hasStarted = false
    private var isClosing = false
    private var outcomes: [Bool] = []

    /// What a start found in the journal.
    public let recovery: Recovery

    public struct Recovery: Sendable {
        public var report: ReplayReport
        /// Queue positions that the journal holds and the database does not have yet.
        public var waitingMessages: Int
    }

    /// Opens the store in a directory that the caller has locked, and reads what the journal holds;
    /// that moves to the database once the store has started.
    ///
    /// - Parameters:
    ///   - directory: the data directory.
    ///   - options: how the store does its work.
    ///   - wake: called, on any thread, when completions or slices wait to be taken, and when new
    ///     messages can be stored again.
    /// - Throws: ``StoreFailure``; nothing that was stored is lost then.
    public init(
        directory: String, options: DurableStoreOptions, wake: @escaping @Sendable () -> Void
    ) throws(StoreFailure) {
        self.directory = directory
        self.options = options
        outbox = StoreOutbox(wake: wake)
        do throws(ThreadFailure) {
            tasks = try WorkQueue(name: "committer")
            movers = try WorkQueue(name: "mover")
            loaders = try WorkQueue(name: "loader")
            ended = try WorkQueue(name: "store")
        } catch {
            throw StoreFailure(operation: "open", path: directory, errno: error.code)
        }
        let database = try Self.openDatabase(in: directory)
        let journal = try Journal(
            directory: "\(directory)/journal", options: options.journal,
            appliedSegment: database.progress.appliedSegment)
        let recovered = try RecoveredJournal.replay(
            journal, beyond: database.progress, of: database.path)
        recovery = Recovery(
            report: recovered.report,
            waitingMessages: recovered.sealed.reduce(0) { $0 + $1.queued.count })
        // Before anything goes on without it: the next start might find nothing amiss.
        try StoredDamage.record(recovered.report.damageLines, in: directory)
        self.database = database
        self.recovered = consume recovered
    }

    deinit { tasks.close() }

    // MARK: Starting

    /// Hands over what a broker needs in memory, in this order; before ``start()``.
    public func restore(_ visitor: inout (some StoreVisitor & ~Copyable)) throws(StoreFailure) {
        guard let database else { preconditionFailure("a store that has started was restored") }
        try recovered?.restore(beyond: database, to: &visitor)
    }

    /// Starts the threads: from now on the store takes writes and reads.
    public func start() throws(StoreFailure) {
        let workers = try makeWorkers()
        let (tasks, movers, loaders, ended) = (tasks, movers, loaders, ended)
        let committer = Handover(workers.committer)
        let mover = Handover(workers.mover)
        let loader = Handover(workers.loader)
        do throws(ThreadFailure) {
            // They end in this order, so that the mover's connection to the database closes last
            // and leaves one whole file.
            try WorkerThread.start(name: "hermes-commit") {
                let isStored = committer.use { $0.run() }
                loaders.close()
                ended.post(isStored)
            }
            try WorkerThread.start(name: "hermes-loader") {
                loader.use { $0.run() }
                movers.close()
            }
            try WorkerThread.start(name: "hermes-mover") {
                ended.post(mover.use { $0.run() })
            }
        } catch {
            tasks.close()
            throw StoreFailure(operation: "start", path: directory, errno: error.code)
        }
        hasStarted = true
    }

    /// What the threads run; each of them belongs to one thread.
    struct Workers {
        let committer: Committer
        let mover: Mover
        let loader: QueueLoader
    }

    /// Makes what the threads run.
    func makeWorkers() throws(StoreFailure) -> Workers {
        guard let database = database.take(), let recovered = recovered.take() else {
            preconditionFailure("a store was started twice")
        }
        let reader = try QueueReader(directory: directory)
        let damage = try StoredDamage(in: directory)
        outbox.update { $0.damageRecords = damage.records }
        let tasks = tasks
        return Workers(
            committer: Committer(
                recovered, options: options, directory: directory, tasks: tasks, movers: movers,
                loaders: loaders, outbox: outbox),
            mover: Mover(
                database: database, retryMilliseconds: options.retryMilliseconds, tasks: movers,
                outbox: outbox
            ) { report in
                switch report {
                case .moved(let segment): tasks.post(.moved(segment: segment))
                case .spare(let file): tasks.post(.spare(file))
                }
            },
            loader: QueueLoader(
                reader: reader, directory: directory, tasks: loaders, outbox: outbox
            ) { number in
                tasks.post(.readDone(number))
            })
    }

    /// Stores and moves what was submitted, and ends the threads; waits for that at most so long.
    /// Nothing is submitted after it.
    ///
    /// - Returns: false when the disk did not let it finish: what was acknowledged is stored all the
    ///   same. True: everything is in the database, and its files are closed.
    public func close(waitMilliseconds: Int32) -> Bool {
        guard hasStarted else {
            database = nil
            recovered = nil
            return true
        }
        if !isClosing { tasks.post(.close) }
        isClosing = true
        let deadline = hermes_monotonic_ms() + UInt64(max(0, waitMilliseconds))
        while outcomes.count < 2 {
            let now = hermes_monotonic_ms()
            let remaining = Int32(deadline > now ? deadline - now : 0)
            outcomes += ended.takeAll(waitMilliseconds: remaining) ?? []
            if remaining == 0 { break }
        }
        return outcomes == [true, true]
    }

    // MARK: Store

    public var isRecording: Bool { true }
    public var isAccepting: Bool { outbox.isAccepting }

    public func submit(_ batch: inout WriteBatch) {
        guard let tickets = batch.tickets else { return }
        precondition(!batch.hasUncommittedRecords, "a batch was submitted within a group")
        tasks.post(
            .write(
                BatchQueue.Batch(
                    bytes: batch.takeBytes(leaving: outbox.takeBuffer()), tickets: tickets)))
    }

    public func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        outbox.takeCompletions(&tickets)
    }

    public func read(_ request: QueueRead) { tasks.post(.read(request)) }

    public func takeSlices(_ slices: inout [QueueSlice]) { outbox.takeSlices(&slices) }

    // MARK: For the operator

    public var figures: StoreFigures { outbox.figures }

    /// Copies the database with everything that is stored now into a directory, which is made if it is
    /// missing, and must hold no other one; `reply` is called on a thread of the store.
    public func backup(to directory: String, reply: @escaping @Sendable (StoreFailure?) -> Void) {
        guard tasks.post(.backup(directory: directory, reply: reply)) else {
            return reply(MoverTask.stopping(directory))
        }
    }

    /// Keeps damaged files under another name and forgets them; `reply` gets what they were called,
    /// on a thread of the store.
    public func acceptLoss(reply: @escaping @Sendable ([String]) -> Void) {
        guard tasks.post(.acceptLoss(reply: reply)) else { return reply([]) }
    }
}

/// Carries an object to the thread that owns it from then on, and that lets it go when it is done.
private final class Handover<Value>: @unchecked Sendable {
    /// Touched by the thread that made it before the other one starts, and then by that one only.
    private var value: Value?

    init(_ value: Value) { self.value = value }

    func use<Result>(_ body: (Value) -> Result) -> Result {
        guard let value = value.take() else { preconditionFailure("an object was used twice") }
        return body(value)
    }
}
