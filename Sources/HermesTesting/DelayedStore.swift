import Store

/// A store that keeps what it was given and completes a ticket only when the test says so, in any order.
package final class DelayedStore: Store {
    /// Every group that was submitted, in order.
    package private(set) var groups: [(ticket: UInt64, records: [StoreRecord])] = []
    /// Tickets that were neither completed nor are about to be.
    package private(set) var pending: [UInt64] = []
    private var ready: [UInt64] = []
    /// Completes everything at once, like a disk that never keeps anybody waiting.
    package var isImmediate = false

    package init() {}

    package var isRecording: Bool { true }

    package func submit(_ batch: borrowing WriteBatch) {
        for (ticket, records) in batch.groups() {
            guard let ticket else { preconditionFailure("records were submitted without a ticket") }
            groups.append((ticket, records))
            if isImmediate { ready.append(ticket) } else { pending.append(ticket) }
        }
    }

    package func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        tickets.append(contentsOf: ready.map { $0...$0 })
        ready.removeAll()
    }

    package func complete(_ ticket: UInt64) {
        guard let index = pending.firstIndex(of: ticket) else {
            preconditionFailure("ticket \(ticket) is not pending")
        }
        pending.remove(at: index)
        ready.append(ticket)
    }

    package func completeAll() {
        ready.append(contentsOf: pending)
        pending.removeAll()
    }

    /// All records so far, for a look at what was stored.
    package var records: [StoreRecord] { groups.flatMap(\.records) }
}
