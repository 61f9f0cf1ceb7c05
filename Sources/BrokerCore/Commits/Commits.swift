import Store
import Structures

/// The shard's writes to the store: the records of this turn, the commits that have not completed,
/// the CONNACKs that wait for them, and whether the store accepts new messages.
///
/// A flow that stores something writes to ``records`` and ends the group with ``commit(_:)``. An
/// answer that depends on the group waits for the returned ticket.
package struct Commits: ~Copyable {
    /// A CONNACK that waits for all commits up to its own.
    package struct Opening: BitwiseCopyable {
        package var ticket: UInt64
        package var connection: Handle
    }

    /// An answer that waits for all commits up to this one.
    package struct Repeat: BitwiseCopyable {
        package var ticket: UInt64
        package var action: CommitLog.Action
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    /// The records of this turn.
    package var records: WriteBatch
    private let store: any Store
    private var log = CommitLog()
    private var backlog = StoreBacklog()
    package private(set) var times = AcknowledgementTimes()
    private var openings = RingBuffer<Opening>()
    /// Repeats of messages whose keys are not stored yet.
    private var repeats = RingBuffer<Repeat>()
    /// The last commit that keeps a key of a message.
    private var keyTicket: UInt64 = 0
    /// Completed commits, and the next one to be handed out.
    private var completions: [ClosedRange<UInt64>] = []
    private var completedRange = 0
    private var completedTicket: UInt64 = 0
    /// Reads of queues, submitted behind the turn's records.
    private var reads: [QueueRead] = []
    private var messageNumber: UInt64 = 0
    /// The last commit that changed a retained message of QoS 1 or 2.
    private var retainedTicket: UInt64 = 0
    /// True when the store holds persistent sessions; memory then holds a window of their queues.
    package let isDurable: Bool
    /// The growth that the store still takes in this turn, in bytes.
    private var room = Int.max
    /// True while the store accepts no new messages: the disk fails, or is nearly full.
    package private(set) var isRefusing = false
    /// True from the moment the backlog reaches its bound until it has fallen to half.
    package private(set) var isBacklogFull = false

    package init(store: any Store) {
        self.store = store
        isDurable = store.isRecording
        records = WriteBatch(isRecording: store.isRecording)
    }

    /// True when new messages for the store have to wait.
    package var holdsMessages: Bool { isRefusing || isBacklogFull || records.growth > room }

    // MARK: Writing

    /// The ticket of the group that is being written.
    package var nextTicket: UInt64 { records.lastTicket + 1 }

    /// Ends the current group of records; returns its ticket.
    @discardableResult
    package mutating func commit(_ action: CommitLog.Action = .none) -> UInt64 {
        let ticket = records.commit()
        log.add(ticket, action)
        return ticket
    }

    /// Ends the current group of records; CONNACK waits for it and for all groups before it.
    package mutating func commitOpening(of connection: Handle) {
        openings.append(Opening(ticket: commit(), connection: connection))
    }

    /// True once, when the backlog has reached `bound` bytes since the last call.
    package mutating func fillsBacklog(bound: Int) -> Bool {
        guard !isBacklogFull, backlogBytes >= bound else { return false }
        isBacklogFull = true
        return true
    }

    /// The bytes of all records that have not been committed.
    package var backlogBytes: Int { records.byteCount + backlog.bytes }

    /// Gives a number to the content of a message, for records that refer to it.
    package mutating func newMessageNumber() -> UInt64 {
        messageNumber += 1
        return messageNumber
    }

    /// Notes that the group with this ticket changes a retained message of QoS 1 or 2.
    package mutating func noteRetained(ticket: UInt64) { retainedTicket = ticket }

    /// The ticket that a retained message waits for before it is sent; 0 when all are stored.
    package var uncommittedRetainedTicket: UInt64 {
        areCommitted(through: retainedTicket) ? 0 : retainedTicket
    }

    /// Notes that the group that is being written keeps a key of a message.
    package mutating func noteKey() { keyTicket = nextTicket }

    /// True while a commit with a key has not completed.
    package var hasUncommittedKeys: Bool { !areCommitted(through: keyTicket) }

    /// Carries out the action once all keys are stored; some are not.
    package mutating func awaitKeys(_ action: CommitLog.Action) {
        repeats.append(Repeat(ticket: keyTicket, action: action))
    }

    /// Sets the highest message number that the store holds.
    package mutating func restore(lastMessage: UInt64) { messageNumber = lastMessage }

    /// Requests a part of a queue, read after this turn's records.
    package mutating func read(_ request: QueueRead) { reads.append(request) }

    /// Submits the turn's groups of records and the reads to the store, without waiting.
    package mutating func submit(_ context: borrowing ShardContext) {
        if !records.isEmpty {
            times.submitted(
                through: records.lastTicket, atMicroseconds: context.nowMicroseconds,
                arrivalStamp: context.now.arrivalStamp)
            backlog.add(bytes: records.byteCount, through: records.lastTicket)
            room -= records.growth
            // Whoever waits for that is resumed when the store has given more room.
            if room < 0 { isRefusing = true }
            store.submit(&records)
        }
        guard !reads.isEmpty else { return }
        for read in reads { store.read(read) }
        reads.removeAll(keepingCapacity: true)
    }

    // MARK: Completions

    /// Asks the store for completed commits; false when there are none. The caller then takes each
    /// with ``nextCompletion(_:)`` and calls ``finishCompletions(_:)``.
    package mutating func fetchCompletions() -> Bool {
        if !completions.isEmpty { completions.removeAll(keepingCapacity: true) }
        store.takeCompletions(&completions)
        guard let first = completions.first else { return false }
        completedRange = 0
        completedTicket = first.lowerBound
        return true
    }

    /// The action of the next completed commit; `nil` after the last.
    package mutating func nextCompletion(_ context: borrowing ShardContext) -> CommitLog.Action? {
        while let ticket = nextAnswer() {
            guard let action = log.complete(ticket) else { continue }
            times.completed(
                ticket, isAcknowledgement: action.isAcknowledgement,
                atMicroseconds: context.nowMicroseconds, stamp: context.now.arrivalStamp)
            return action
        }
        return nil
    }

    /// The next ticket among the store's answers.
    private mutating func nextAnswer() -> UInt64? {
        guard completedRange < completions.count else { return nil }
        let ticket = completedTicket
        if ticket < completions[completedRange].upperBound {
            completedTicket += 1
        } else {
            completedRange += 1
            if completedRange < completions.count {
                completedTicket = completions[completedRange].lowerBound
            }
        }
        return ticket
    }

    /// Removes completed batches from the backlog.
    package mutating func finishCompletions(_ context: borrowing ShardContext) {
        let bound = context.limits.storeBacklogBytes
        times.endCompletions(
            atMicroseconds: context.nowMicroseconds, stamp: context.now.arrivalStamp)
        backlog.complete(log)
        if backlogBytes <= bound / 2 { isBacklogFull = false }
    }

    /// Asks the store whether it accepts new messages.
    package mutating func updateRefusal() {
        room = store.room
        isRefusing = !store.isAccepting || room < 0
    }

    /// The next connection whose CONNACK waits for no commit. Because a CONNACK waits for every
    /// earlier commit, all that the session's former connection wrote is stored too.
    package mutating func nextOpening() -> Handle? {
        guard openings.count > 0, log.areCommitted(through: openings[0].ticket) else { return nil }
        defer { openings.removeFirst() }
        return openings[0].connection
    }

    /// The action of the next repeat whose first message is stored.
    package mutating func nextRepeat() -> CommitLog.Action? {
        guard repeats.count > 0, log.areCommitted(through: repeats[0].ticket) else { return nil }
        return repeats.popFirst()?.action
    }

    /// The parts of queues that the store has read since the last call.
    package mutating func takeSlices() -> [QueueSlice] {
        var slices: [QueueSlice] = []
        store.takeSlices(&slices)
        return slices
    }

    /// False also for the ticket of the group that is still being written.
    @inline(__always)
    package func isCommitted(_ ticket: UInt64) -> Bool { log.isCommitted(ticket) }

    /// Marks the ticket of an acknowledgement that waits for all tickets before it, too.
    package static func through(_ ticket: UInt64) -> UInt64 { ticket | 1 << 63 }

    /// True when an acknowledgement with this ticket may leave.
    @inline(__always)
    package func mayAcknowledge(_ ticket: UInt64) -> Bool {
        ticket >> 63 == 0
            ? log.isCommitted(ticket) : log.areCommitted(through: ticket & ~(1 << 63))
    }

    /// True when this ticket and all tickets before it are complete.
    @inline(__always)
    package func areCommitted(through ticket: UInt64) -> Bool { log.areCommitted(through: ticket) }

    package var pendingCount: Int { log.pendingCount }

    /// True when the next turn has work here without any event.
    package var hasWork: Bool { !records.isEmpty || !reads.isEmpty }
}
