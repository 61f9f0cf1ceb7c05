import NIOConcurrencyHelpers
import NIOCore

/// Elements on their way from the event loop to the tasks that await them, in order; each goes to
/// one task.
final class Mailbox<Element: Sendable>: Sendable {
    private typealias Waiter = CheckedContinuation<Element?, Never>

    private struct State {
        var elements = CircularBuffer<Element>()
        /// The one that waits for longest stands first.
        var waiters = CircularBuffer<(number: Int, waiter: Waiter)>()
        var nextWaiter = 0
        /// The loops that began before this number of ends are over.
        var ends = 0
        var isClosed = false
    }

    /// Beyond so many elements the oldest is dropped.
    private let mostElements: Int
    private let state = NIOLockedValueBox(State())

    init(mostElements: Int) { self.mostElements = mostElements }

    var count: Int { state.withLockedValue { $0.elements.count } }

    /// To be given to ``take(since:)``: names the time between two ends.
    var ends: Int { state.withLockedValue { $0.ends } }

    func put(_ element: Element) {
        let waiter = state.withLockedValue { state -> Waiter? in
            if !state.waiters.isEmpty { return state.waiters.removeFirst().waiter }
            if state.elements.count >= mostElements { state.elements.removeFirst() }
            state.elements.append(element)
            return nil
        }
        waiter?.resume(returning: element)
    }

    /// Ends all loops over the mailbox. What it holds stays for loops that begin later.
    func end() {
        release { $0.ends += 1 }
    }

    /// Ends all loops over the mailbox as soon as they have what it holds; none begins again.
    func close() {
        release { $0.isClosed = true }
    }

    private func release(_ change: (inout State) -> Void) {
        let waiters = state.withLockedValue { state in
            change(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for (_, waiter) in waiters { waiter.resume(returning: nil) }
    }

    /// The next element; `nil` when the loop is over, which began after the end `since`, and when
    /// the task is cancelled.
    func take(since: Int) async -> Element? {
        let number = state.withLockedValue { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { add($0, as: number, since: since) }
        } onCancel: {
            cancel(number)
        }
    }

    private func add(_ waiter: Waiter, as number: Int, since: Int) {
        let element = state.withLockedValue { state -> Element?? in
            if state.ends != since || Task.isCancelled { return .some(nil) }
            if !state.elements.isEmpty { return state.elements.removeFirst() }
            if state.isClosed { return .some(nil) }
            // A cancellation from now on finds the waiter.
            state.waiters.append((number, waiter))
            return nil
        }
        if let element { waiter.resume(returning: element) }
    }

    private func cancel(_ number: Int) {
        let waiter = state.withLockedValue { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.number == number }) else {
                return nil
            }
            return state.waiters.remove(at: index).waiter
        }
        waiter?.resume(returning: nil)
    }
}
