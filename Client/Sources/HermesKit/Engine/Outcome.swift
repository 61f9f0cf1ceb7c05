import NIOConcurrencyHelpers

/// A result that comes once and that any number of tasks may await.
final class Outcome<Value: Sendable>: Sendable {
    private typealias Waiter = CheckedContinuation<Value, any Error>

    private struct State {
        var result: Result<Value, any Error>?
        /// The result cannot come now: those who wait throw this, and so do those who begin to.
        var pause: (any Error)?
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        var isAbandoned = false
    }

    private let state = NIOLockedValueBox(State())

    init() {}

    /// The first result counts.
    func finish(_ result: Result<Value, any Error>) {
        let waiters = state.withLockedValue { state -> [Waiter] in
            guard state.result == nil else { return [] }
            state.result = result
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(with: result) }
    }

    /// Nobody waits while there is an error here: the result cannot come. It may come later.
    func pause(_ error: (any Error)?) {
        let waiters = state.withLockedValue { state -> [Waiter] in
            state.pause = error
            guard error != nil, state.result == nil else { return [] }
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        if let error { for waiter in waiters { waiter.resume(throwing: error) } }
    }

    /// The tasks that awaited the result were cancelled.
    var isAbandoned: Bool { state.withLockedValue { $0.isAbandoned } }

    /// Waits for the result; throws `CancellationError` when the task is cancelled.
    var value: Value {
        get async throws {
            let number = state.withLockedValue { state in
                state.nextWaiter += 1
                return state.nextWaiter
            }
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { add($0, as: number) }
            } onCancel: {
                let waiter = state.withLockedValue { state in
                    defer { state.isAbandoned = state.waiters.isEmpty }
                    return state.waiters.removeValue(forKey: number)
                }
                waiter?.resume(throwing: CancellationError())
            }
        }
    }

    private func add(_ waiter: Waiter, as number: Int) {
        let result = state.withLockedValue { state -> Result<Value, any Error>? in
            if let result = state.result { return result }
            // A cancellation from now on finds the waiter.
            if Task.isCancelled { return .failure(CancellationError()) }
            if let pause = state.pause { return .failure(pause) }
            state.waiters[number] = waiter
            return nil
        }
        if let result { waiter.resume(with: result) }
    }
}
