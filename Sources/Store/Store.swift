/// Keeps state that outlives a connection. Writes are named by tickets, and nobody waits in a call.
///
/// One thread submits writes and takes completions. A store may complete tickets late and in any
/// order, so whoever depends on a write waits for exactly its ticket. A store that works on threads
/// of its own wakes the submitter by a closure that it was made with.
public protocol Store: AnyObject {
    /// False for a store that keeps no records; its batches have no bytes.
    var isRecording: Bool { get }

    /// True while new messages can be stored. Acknowledgements and removals can always be stored.
    var isAccepting: Bool { get }

    /// The room for new messages: by how many bytes ``WriteBatch/growth`` may rise, together, in
    /// what is submitted from now on. Negative when more was submitted. The store keeps room for one
    /// message of the largest size beyond it.
    var room: Int { get }

    /// Hands the visitor what a broker keeps in memory, in the order of ``StoreVisitor``. Must be
    /// called before ``start()``.
    func restore<Visitor: StoreVisitor & ~Copyable>(
        _ visitor: inout Visitor
    ) throws(StoreFailure)

    /// Starts the store's threads. From now on it takes writes and reads.
    func start() throws(StoreFailure)

    /// Stores everything that was submitted, and ends the threads. Waits at most `waitMilliseconds`
    /// for that; false when the disk did not allow it in time. Nothing may be submitted afterwards.
    func close(waitMilliseconds: Int32) -> Bool

    /// What an operator may ask of the store, from any thread; `nil` for a store that keeps nothing.
    var operations: (any StoreOperations)? { get }

    /// Takes the writes of a turn and leaves the batch empty. Returns at once.
    func submit(_ batch: inout WriteBatch)

    /// Appends the tickets that have completed since the last call. Their writes are as durable as
    /// the store's configuration promises.
    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>])

    /// Asks for a part of a session's queue, with the effect of everything submitted before. The
    /// answer comes through ``takeSlices(_:)``.
    func read(_ request: QueueRead)

    /// Appends the answers that have arrived since the last call, in the order of their requests.
    func takeSlices(_ slices: inout [QueueSlice])
}

/// A store that keeps nothing has nothing to restore, to start or to close.
extension Store {
    public func restore<Visitor: StoreVisitor & ~Copyable>(
        _ visitor: inout Visitor
    ) throws(StoreFailure) {}

    public var room: Int { .max }

    public func start() throws(StoreFailure) {}

    public func close(waitMilliseconds: Int32) -> Bool { true }

    public var operations: (any StoreOperations)? { nil }
}

/// What an operator asks of a store that keeps records. Any thread may call.
public protocol StoreOperations: AnyObject, Sendable {
    var figures: StoreFigures { get }

    /// Copies everything that is stored now to a folder, which is created, or must be empty; `files`
    /// come beside the copy. Calls `reply` on a thread of the store, with `nil` for success. After a
    /// failure nothing is left of the copy.
    func backup(
        to directory: String, with files: [BackupFile],
        reply: @escaping @Sendable (StoreFailure?) -> Void)

    /// Accepts the loss of damaged files and renames them. Calls `reply` on a thread of the store,
    /// with the paths that the files had.
    func acceptLoss(reply: @escaping @Sendable ([String]) -> Void)
}

/// A request for messages of one session's queue.
public struct QueueRead: Hashable, Sendable {
    /// The session's number.
    public var session: UInt64
    /// The first position to read.
    public var from: UInt64
    /// The position before which the read ends.
    public var below: UInt64
    /// The largest number of messages; at least 1.
    public var maxMessages: Int
    /// The largest number of bytes of topics and payloads. The first message is read even if it
    /// alone has more.
    public var maxBytes: Int
    /// Returned with the answer, for the caller's use.
    public var tag: UInt64
    /// Returned with the answer: the ticket that the messages wait for.
    public var ticket: UInt64

    public init(
        session: UInt64, from: UInt64, below: UInt64, maxMessages: Int, maxBytes: Int,
        tag: UInt64, ticket: UInt64
    ) {
        self.session = session
        self.from = from
        self.below = below
        self.maxMessages = maxMessages
        self.maxBytes = maxBytes
        self.tag = tag
        self.ticket = ticket
    }
}
