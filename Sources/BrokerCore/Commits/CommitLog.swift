import Structures

/// The commits that have not completed, each with the action that waits for it.
///
/// A commit waits for a count of answers: one of the store, and later one of each store or broker
/// that must have the group before anybody is told. Tickets are the shard's own numbers of its
/// groups, consecutive because the shard ends one group after the other; who answers gives a ticket
/// back, in any order.
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
        /// The answers that are still awaited.
        package var awaited: UInt8

        @inline(__always)
        package var isComplete: Bool { awaited == 0 }
    }

    private var entries = RingBuffer<Entry>()
    /// The lowest ticket that is not complete.
    private var first: UInt64 = 1

    /// Records the next ticket, which is complete after `answers` calls of ``complete(_:)``; at least
    /// 1. Tickets must come in ascending order without gaps.
    package mutating func add(_ ticket: UInt64, _ action: Action, answers: UInt8 = 1) {
        precondition(answers > 0, "ticket \(ticket) would wait for nobody")
        precondition(ticket == first + UInt64(entries.count), "ticket \(ticket) out of turn")
        entries.append(Entry(action: action, awaited: answers))
    }

    /// False also for the ticket of the group that is still being written.
    package func isCommitted(_ ticket: UInt64) -> Bool {
        guard ticket >= first else { return true }
        let index = Int(ticket - first)
        return index < entries.count && entries[index].isComplete
    }

    /// True when this ticket and all tickets before it are complete.
    package func areCommitted(through ticket: UInt64) -> Bool { ticket < first }

    /// Takes one answer; hands out the ticket's action with the last one, `nil` before.
    package mutating func complete(_ ticket: UInt64) -> Action? {
        precondition(
            ticket >= first && ticket < first + UInt64(entries.count),
            "ticket \(ticket) completed twice, or never given")
        let index = Int(ticket - first)
        precondition(!entries[index].isComplete, "ticket \(ticket) completed twice")
        entries[index].awaited -= 1
        guard entries[index].isComplete else { return nil }
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
