import CLinux
import Glibc
import Synchronization

/// Hands tasks of two ranks from any thread to several workers; each worker takes one task at a
/// time.
///
/// Tasks of the first rank go before all others; within a rank the order is kept. Posting makes a
/// system call only while a worker sleeps. ``close()`` drops the tasks that still wait.
public final class RankedQueue<Task: Sendable>: Sendable {
    public enum Rank: Sendable {
        case first, second
    }

    private struct State {
        var first = FIFO()
        var second = FIFO()
        var isClosed = false
        /// Workers that sleep, or are about to, and that no task has woken yet.
        var sleeping = 0
    }

    /// A queue made of two stacks: each task moves once from `arrived` to `leaving`.
    private struct FIFO {
        private var arrived: [Task] = []
        private var leaving: [Task] = []

        mutating func append(_ task: Task) { arrived.append(task) }

        mutating func removeFirst() -> Task? {
            if leaving.isEmpty {
                leaving = arrived.reversed()
                arrived.removeAll(keepingCapacity: true)
            }
            return leaving.popLast()
        }

        mutating func removeAll() {
            arrived = []
            leaving = []
        }
    }

    private let state = Mutex(State())
    /// An eventfd whose value is the number of workers that may wake up.
    private let semaphore: CInt

    /// Opens the queue. `name` stands in errors only.
    public init(name: String) throws(ThreadFailure) {
        semaphore = eventfd(0, CInt(EFD_SEMAPHORE | EFD_CLOEXEC))
        guard semaphore >= 0 else { throw ThreadFailure(name: name, code: errno) }
    }

    deinit { _ = Glibc.close(semaphore) }

    /// Hands a task to the workers; false once the queue is closed.
    @discardableResult
    public func post(_ task: Task, _ rank: Rank) -> Bool {
        let (isAccepted, wakes) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            switch rank {
            case .first: state.first.append(task)
            case .second: state.second.append(task)
            }
            guard state.sleeping > 0 else { return (true, false) }
            state.sleeping -= 1
            return (true, true)
        }
        if wakes { wakeUp(semaphore) }
        return isAccepted
    }

    /// Takes no further tasks, drops those that wait, and wakes all workers.
    public func close() {
        let sleeping = state.withLock { state in
            state.isClosed = true
            state.first.removeAll()
            state.second.removeAll()
            defer { state.sleeping = 0 }
            return state.sleeping
        }
        if sleeping > 0 { wakeUp(semaphore, adding: sleeping) }
    }

    /// Takes the next task without sleeping; `nil` when none waits.
    public func takeNow() -> Task? {
        state.withLock { $0.first.removeFirst() ?? $0.second.removeFirst() }
    }

    /// Takes the next task and sleeps while there is none; `nil` once the queue is closed.
    public func take() -> Task? {
        while true {
            let (task, isClosed) = state.withLock { state -> (Task?, Bool) in
                if let task = state.first.removeFirst() ?? state.second.removeFirst() {
                    return (task, false)
                }
                if !state.isClosed { state.sleeping += 1 }
                return (nil, state.isClosed)
            }
            if let task { return task }
            if isClosed { return nil }
            sleep()
        }
    }

    /// Sleeps until the semaphore lets one worker through.
    private func sleep() {
        var counter: UInt64 = 0
        // A signal may interrupt the read.
        while Glibc.read(semaphore, &counter, 8) != 8 {}
    }
}
