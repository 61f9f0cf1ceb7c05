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
