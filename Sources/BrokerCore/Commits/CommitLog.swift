import Structures

/// The commits that have not completed, each with the action that waits for it.
package struct CommitLog: ~Copyable {
    package enum Action: BitwiseCopyable {
        case none
        /// Acknowledgements of this connection may leave.
        case acknowledge(Handle)
        /// A feature goes on with what it gave this number.
        case follower(UInt64)

        @inline(__always)
        package var isAcknowledgement: Bool {
            switch self {
            case .acknowledge: true
            case .none, .follower: false
            }
        }
    }

    package struct Entry: BitwiseCopyable {
        package var action: Action
        package var isComplete: Bool
    }

    private var entries = RingBuffer<Entry>()
    /// The lowest ticket that is not complete.
    private var first: UInt64 = 1

    /// Records the next ticket. Tickets must come in ascending order without gaps.
    package mutating func add(_ ticket: UInt64, _ action: Action) {
        precondition(ticket == first + UInt64(entries.count), "ticket \(ticket) out of turn")
        entries.append(Entry(action: action, isComplete: false))
    }

    /// False also for the ticket of the group that is still being written.
    package func isCommitted(_ ticket: UInt64) -> Bool {
        guard ticket >= first else { return true }
        let index = Int(ticket - first)
        return index < entries.count && entries[index].isComplete
    }

    /// True when this ticket and all tickets before it are complete.
    package func areCommitted(through ticket: UInt64) -> Bool { ticket < first }

    /// Marks a ticket complete and hands out its action.
    package mutating func complete(_ ticket: UInt64) -> Action {
        precondition(
            ticket >= first && ticket < first + UInt64(entries.count),
            "ticket \(ticket) completed twice, or never given")
        let index = Int(ticket - first)
        precondition(!entries[index].isComplete, "ticket \(ticket) completed twice")
        entries[index].isComplete = true
        let action = entries[index].action
        while entries.count > 0, entries[0].isComplete {
            entries.removeFirst()
            first += 1
        }
        return action
    }

    /// Tickets that have not completed.
    package var pendingCount: Int { entries.count }
}
