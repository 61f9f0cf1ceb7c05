import Threads

/// The durable store: a journal that makes acknowledgements cheap, in front of a database that keeps
/// what lives long.
///
/// Four threads share the work, and no state: whoever submits (a shard), the ``Committer``, the
/// ``Mover`` and the ``QueueLoader``. See docs/durability.md.
public final class DurableStore: Store, @unchecked Sendable {
    private let tasks: WorkQueue<Committer.Task>
    private let movers: WorkQueue<MoverTask>
    private let loaders: WorkQueue<LoaderTask>
    private let ended: WorkQueue<Void>
    private let outbox: StoreOutbox
    private let directory: String
    private let options: DurableStoreOptions
    /// Until ``start()`` they belong to the thread that opened the store.
    private var database: Database?
    private var journal: Journal?
    private var hasStarted = false

    /// What a start found in the journal.
    public let recovery: Recovery

    public struct Recovery: Sendable {
        public var report: ReplayReport
        /// Queue positions that the journal held and the database has now.
        public var movedMessages: Int
    }

    /// Opens the store in a directory that the caller has locked, and brings everything that the
    /// journal holds into the database.
    ///
    /// - Parameter wake: called, on any thread, when completions or slices wait to be taken.
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
        let database = try Database(directory: directory)
        var journal = try Journal(
            directory: "\(directory)/journal", options: options.journal,
            appliedSegment: database.progress.appliedSegment)
        recovery = try Self.recover(&journal, into: database)
        self.database = database
        self.journal = consume journal
    }

    /// Everything that the journal holds goes into the database, which then is all there is.
    private static func recover(
        _ journal: inout Journal, into database: Database
    ) throws(StoreFailure) -> Recovery {
        let progress = database.progress
        let path = database.path
        var overlay = JournalOverlay(
            activeSegment: 0, lastSession: progress.lastSession,
            lastMessage: progress.lastMessage)
        let report = try journal.replay { (segment, offset, bytes) throws(StoreFailure) in
            if overlay.active.number != segment { _ = overlay.seal(next: segment) }
            do throws(DamagedRecord) {
                try overlay.apply(bytes, at: offset)
            } catch {
                throw StoreFailure(
                    operation: "read", path: path,
                    reason: "segment \(segment) of the journal holds records of another format",
                    kind: .damaged, cure: "Start the version of hermesd that wrote them.")
            }
        }
        _ = overlay.seal(next: overlay.active.number + 1)
        var content = SegmentBytes()
        var messages = 0
        for sealed in overlay.sealed {
            guard let reader = journal.reader(of: sealed.changes.segment) else { continue }
            try database.apply(sealed.changes) { (location) throws(StoreFailure) in
                try content.read(location, reader)
            }
            messages += sealed.changes.queued.count
        }
        if let last = journal.segmentNumbers.last { journal.free(through: last) }
        return Recovery(report: report, movedMessages: messages)
    }

    // MARK: Starting

    /// Hands over what a broker needs in memory, in this order; before ``start()``.
    public func restore(_ visitor: inout (some StoreVisitor & ~Copyable)) throws(StoreFailure) {
        guard let database else { preconditionFailure("a store that has started was restored") }
        visitor.visit(
            lastSession: database.progress.lastSession,
            lastMessage: database.progress.lastMessage)
        try database.forEachSession { visitor.visit($0) }
        try database.forEachSubscription { visitor.visit(subscription: $1, of: $0, qos: $2) }
        try database.forEachInbound { visitor.visit(packetIdentifier: $1, of: $0) }
        try database.forEachRetained { visitor.visit(retained: $0) }
        try database.forEachSequence { visitor.visit(channel: $0, number: $1) }
        try database.forEachWill { visitor.visit(will: $1, of: $0) }
    }

    /// Starts the threads: from now on the store takes writes and reads.
    public func start() throws(StoreFailure) {
        guard !hasStarted, let database = database.take(), var journal = journal.take() else {
            preconditionFailure("a store was started twice")
        }
        hasStarted = true
        let reader = try QueueReader(directory: directory)
        try journal.beginSegment()
        guard let segment = journal.activeSegment else {
            preconditionFailure("a journal without a segment after it began one")
        }
        let (tasks, movers, loaders, ended) = (tasks, movers, loaders, ended)
        let committer = Committer(
            journal: journal,
            overlay: JournalOverlay(
                activeSegment: segment, lastSession: database.progress.lastSession,
                lastMessage: database.progress.lastMessage),
            options: options, directory: directory, tasks: tasks, movers: movers,
            loaders: loaders, outbox: outbox)
        let mover = Mover(database: database, tasks: movers, outbox: outbox) { report in
            switch report {
            case .moved(let segment): tasks.post(.moved(segment: segment))
            case .spare(let file): tasks.post(.spare(file))
            }
        }
        let loader = QueueLoader(reader: reader, tasks: loaders, outbox: outbox) { number in
            tasks.post(.readDone(number))
        }
        do throws(ThreadFailure) {
            // Each of them belongs to its thread from here on.
            nonisolated(unsafe) let (threadCommitter, threadMover, threadLoader) = (
                committer, mover, loader
            )
            try WorkerThread.start(name: "hermes-commit") { threadCommitter.run() }
            try WorkerThread.start(name: "hermes-mover") {
                threadMover.run()
                ended.post(())
            }
            try WorkerThread.start(name: "hermes-loader") { threadLoader.run() }
        } catch {
            throw StoreFailure(operation: "start", path: directory, errno: error.code)
        }
    }

    /// Stores and moves what was submitted, and ends the threads; waits for that at most so long.
    /// False when the disk did not let it finish: what was acknowledged is stored all the same.
    public func close(waitMilliseconds: Int32) -> Bool {
        guard hasStarted else { return true }
        tasks.close()
        return ended.takeAll(waitMilliseconds: waitMilliseconds)?.isEmpty == false
    }

    // MARK: Store

    public var isRecording: Bool { true }
    public var isAccepting: Bool { outbox.isAccepting }

    public func submit(_ batch: inout WriteBatch) {
        guard let tickets = batch.tickets else { return }
        tasks.post(
            .write(
                Committer.Batch(
                    bytes: batch.takeBytes(leaving: outbox.takeBuffer()), tickets: tickets)))
    }

    public func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        outbox.takeCompletions(&tickets)
    }

    public func read(_ request: QueueRead) { tasks.post(.read(request)) }

    public func takeSlices(_ slices: inout [QueueSlice]) { outbox.takeSlices(&slices) }

    // MARK: For the operator

    public var figures: StoreFigures { outbox.figures }

    /// Copies the database with everything that is stored now into a directory, which is made; `reply`
    /// is called on a thread of the store.
    public func backup(to directory: String, reply: @escaping @Sendable (StoreFailure?) -> Void) {
        tasks.post(.backup(directory: directory, reply: reply))
    }

    /// Keeps damaged files under another name and forgets them; `reply` gets what they were called.
    public func acceptLoss(reply: @escaping @Sendable ([String]) -> Void) {
        tasks.post(.acceptLoss(reply: reply))
    }
}

/// Takes what a store held when the broker starts; bytes are valid within each call.
public protocol StoreVisitor: ~Copyable {
    mutating func visit(lastSession: UInt64, lastMessage: UInt64)
    mutating func visit(_ session: StoredSession)
    mutating func visit(
        subscription filter: UnsafeRawBufferPointer, of session: UInt64, qos: UInt8)
    mutating func visit(packetIdentifier: UInt16, of session: UInt64)
    mutating func visit(retained message: StoredMessage)
    mutating func visit(channel: UnsafeRawBufferPointer, number: UInt64)
    mutating func visit(will message: StoredMessage, of session: UInt64)
}
