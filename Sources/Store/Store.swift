/// Where state lives that outlasts a connection; written by tickets, never waited for.
///
/// One thread submits and takes completions. A store may complete tickets late and in any order;
/// whoever depends on one waits for exactly that one. Stores whose work happens on threads of
/// their own wake the submitter by the closure that they were made with.
public protocol Store: AnyObject {
    /// Whether records are kept at all; a store that keeps none gets batches without bytes.
    var isRecording: Bool { get }

    /// Whether new messages can be stored at present; acknowledgements and removals always can.
    var isAccepting: Bool { get }

    /// Takes a turn's writes over and leaves the batch empty; returns at once.
    func submit(_ batch: inout WriteBatch)

    /// Appends the tickets that have completed since the last call: everything they stand for is as
    /// durable as the store's configuration promises.
    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>])

    /// Asks for a part of a session's queue, as of everything that was submitted before; the answer
    /// comes by ``takeSlices(_:)``.
    func read(_ request: QueueRead)

    /// Appends the answers that have arrived since the last call, in the order of their requests.
    func takeSlices(_ slices: inout [QueueSlice])
}

/// A request for messages of one session's queue.
public struct QueueRead: Hashable, Sendable {
    /// The session's number.
    public var session: UInt64
    /// Positions from this one on.
    public var from: UInt64
    /// Positions below this one.
    public var below: UInt64
    /// At least 1.
    public var maxMessages: Int
    /// Of topics and payloads; the first message comes also if it alone has more.
    public var maxBytes: Int
    /// Comes back with the answer, for whoever asked.
    public var tag: UInt64
    /// The same: the ticket that what is read has to wait for.
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
