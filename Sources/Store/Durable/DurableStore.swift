import CCheckedPages
import CLinux
import Threads

/// The durable store: a journal that makes acknowledgements cheap, in front of a database for state
/// that lives long.
///
/// Four threads share the work and no state: the submitter (a shard), the ``Committer``, the
/// ``Mover`` and the ``QueueLoader``. See docs/durability.md.
///
/// It is unchecked because the submitter's own state has no lock. What any thread may call,
/// ``StoreOperations``, uses the queues of tasks and the outbox alone, which have one.
public final class DurableStore: Store, StoreOperations, @unchecked Sendable {
    let tasks: WorkQueue<Committer.Task>
    let movers: WorkQueue<MoverTask>
    let loaders: WorkQueue<LoaderTask>
    /// The results of the committer and of the mover when they end: true when nothing is left to
    /// do.
    private let ended: WorkQueue<Bool>
    private let outbox: StoreOutbox
    private let directory: String
    private let options: DurableStoreOptions
    /// Both belong to the thread that opened the store until ``start()``.
    private var database: Database?
    private var recovered: RecoveredJournal?
    private var hasStarted = false
    private var isClosing = false
    private var outcomes: [Bool] = []

    /// The findings of the start in the journal.
    public let recovery: Recovery

    public struct Recovery: Sendable {
        public var report: ReplayReport
        /// Queue positions that are in the journal and not yet in the database.
        public var waitingMessages: Int
    }

    /// Opens the store in a directory that the caller has locked, and reads the journal. Its
    /// content moves to the database after ``start()``.
    ///
    /// - Parameters:
    ///   - directory: the data directory.
    ///   - options: settings of the store.
    ///   - wake: called on any thread when completions or slices can be taken, and when new
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
        // A disk that others have filled must not keep the broker from starting.
        Ballast(in: directory, options: options).releaseIfFull(directory)
        let database = try Self.openDatabase(in: directory)
        try database.name(options.factTables)
        let journal = try Journal(
            directory: "\(directory)/journal", options: options.journal,
            appliedSegment: database.progress.appliedSegment)
        let recovered = try RecoveredJournal.replay(journal, beyond: database)
        recovery = Recovery(
            report: recovered.report,
            waitingMessages: recovered.sealed.reduce(0) { $0 + $1.queued.count })
        // Recorded before the store continues without the lost data, since the next start might
        // find no sign of the loss.
        try StoredDamage.record(recovered.report.damageLines, in: directory)
        self.database = database
        self.recovered = consume recovered
    }

    deinit { tasks.close() }

    // MARK: Starting

    public func restore<Visitor: StoreVisitor & ~Copyable>(
        _ visitor: inout Visitor
    ) throws(StoreFailure) {
        guard let database else { preconditionFailure("a store that has started was restored") }
        let damage = try recovered?.restore(beyond: database, to: &visitor)
        if let damage { try StoredDamage.record(damage, in: directory) }
    }

    /// Starts the threads. From now on the store takes writes and reads.
    public func start() throws(StoreFailure) {
        let workers = try makeWorkers()
        let (tasks, movers, loaders, ended) = (tasks, movers, loaders, ended)
        let committer = Handover(workers.committer)
        let mover = Handover(workers.mover)
        let loader = Handover(workers.loader)
        do throws(ThreadFailure) {
            // The threads end in this order: the mover's connection to the database closes last,
            // and leaves a single complete file.
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

    /// The objects that the threads run; each belongs to one thread.
    struct Workers {
        let committer: Committer
        let mover: Mover
        let loader: QueueLoader
    }

    /// Makes the objects that the threads run.
    func makeWorkers() throws(StoreFailure) -> Workers {
        guard let database = database.take(), let recovered = recovered.take() else {
            preconditionFailure("a store was started twice")
        }
        let reader = try QueueReader(directory: directory)
        let ballast = Ballast(in: directory, options: options)
        let usedBytes = try database.usedBytes()
        let damage = try StoredDamage(in: directory)
        outbox.update { $0.damageRecords = damage.records }
        let tasks = tasks
        return Workers(
            committer: Committer(
                recovered, databaseBytes: usedBytes, options: options, directory: directory,
                tasks: tasks, movers: movers, loaders: loaders, outbox: outbox),
            mover: Mover(
                database: database, ballast: ballast,
                retryMilliseconds: options.retryMilliseconds, tasks: movers, outbox: outbox
            ) { report in
                switch report {
                case .moved(let segment, let databaseBytes):
                    tasks.post(.moved(segment: segment, databaseBytes: databaseBytes))
                case .spare(let file): tasks.post(.spare(file))
                }
            },
            loader: QueueLoader(
                reader: reader, directory: directory, tasks: loaders, outbox: outbox
            ) { number in
                tasks.post(.readDone(number))
            })
    }

    /// Stores everything that was submitted, moves it to the database, and ends the threads. Waits
    /// at most `waitMilliseconds` for that. Nothing may be submitted afterwards.
    ///
    /// - Returns: true when everything is in the database and its files are closed. False when the
    ///   disk did not allow it in time; acknowledged messages are stored all the same.
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
    public var room: Int { outbox.room }

    public func submit(_ batch: inout WriteBatch) {
        guard let tickets = batch.tickets else { return }
        precondition(!batch.hasUncommittedRecords, "a batch was submitted within a group")
        let growth = batch.growth
        let submitted = outbox.submit(growth: growth)
        tasks.post(
            .write(
                BatchQueue.Batch(
                    bytes: batch.takeBytes(leaving: outbox.takeBuffer()), tickets: tickets,
                    growth: growth, submitted: submitted)))
    }

    public func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        outbox.takeCompletions(&tickets)
    }

    public func read(_ request: QueueRead) { tasks.post(.read(request)) }

    public func takeSlices(_ slices: inout [QueueSlice]) { outbox.takeSlices(&slices) }

    // MARK: For the operator

    public var operations: (any StoreOperations)? { self }
    public var figures: StoreFigures {
        var figures = outbox.figures
        figures.correctedPages = hermes_page_findings().corrected
        return figures
    }

    /// Copies the database, with everything that is stored now, to a folder. The folder is created,
    /// or must be empty; `files` come beside the copy. Calls `reply` on a thread of the store, with
    /// `nil` for success. After a failure nothing is left of it.
    public func backup(
        to directory: String, with files: [BackupFile] = [],
        reply: @escaping @Sendable (StoreFailure?) -> Void
    ) {
        guard tasks.post(.backup(directory: directory, files: files, reply: reply)) else {
            return reply(MoverTask.stopping(directory))
        }
    }

    /// Accepts the loss of damaged files and renames them. Calls `reply` on a thread of the store,
    /// with the paths that the files had.
    public func acceptLoss(reply: @escaping @Sendable ([String]) -> Void) {
        guard tasks.post(.acceptLoss(reply: reply)) else { return reply([]) }
    }
}

/// Hands an object to the thread that owns it from then on. That thread frees it when it is done.
private final class Handover<Value>: @unchecked Sendable {
    /// Used by the thread that made it before the other one starts, and by the other one only after
    /// that.
    private var value: Value?

    init(_ value: Value) { self.value = value }

    func use<Result>(_ body: (Value) -> Result) -> Result {
        guard let value = value.take() else { preconditionFailure("an object was used twice") }
        return body(value)
    }
}
