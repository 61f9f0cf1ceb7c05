import CLinux
import Glibc
import Synchronization

/// Tasks of two ranks from any thread to several workers, each of which takes one at a time.
///
/// Where tasks cost far more than the two system calls that handing one over takes. Those of the first
/// rank go before all others; within a rank they are taken in order. A queue that is closed drops what
/// still waits.
public final class RankedQueue<Task: Sendable>: Sendable {
    public enum Rank: Sendable {
        case first, second
    }

    private struct State {
        var first = FIFO()
        var second = FIFO()
        var isClosed = false
    }

    /// Two stacks make a queue: each task moves once from one to the other.
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
    /// Counts tasks; a worker takes one off before it takes the task.
    private let semaphore: CInt
    private let workers: Int

    /// `workers` threads take tasks; `name` says whose queue it is, for errors.
    public init(name: String, workers: Int) throws(ThreadFailure) {
        precondition(workers > 0, "a queue for \(workers) threads")
        self.workers = workers
        semaphore = eventfd(0, CInt(EFD_SEMAPHORE | EFD_CLOEXEC))
        guard semaphore >= 0 else { throw ThreadFailure(name: name, code: errno) }
    }

    deinit { _ = Glibc.close(semaphore) }

    /// Hands a task over; false once the queue is closed.
    @discardableResult
    public func post(_ task: Task, _ rank: Rank) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isClosed else { return false }
            switch rank {
            case .first: state.first.append(task)
            case .second: state.second.append(task)
            }
            return true
        }
        if isAccepted { wake(1) }
        return isAccepted
    }

    /// Refuses further tasks, drops those that wait, and wakes the workers.
    public func close() {
        state.withLock { state in
            state.isClosed = true
            state.first.removeAll()
            state.second.removeAll()
        }
        wake(workers)
    }

    /// Takes the next task; sleeps while there is none. `nil` once the queue is closed.
    public func take() -> Task? {
        while true {
            var counter: UInt64 = 0
            _ = Glibc.read(semaphore, &counter, 8)
            let (task, isClosed) = state.withLock { state in
                (state.first.removeFirst() ?? state.second.removeFirst(), state.isClosed)
            }
            if let task { return task }
            // Else a signal interrupted the wait.
            if isClosed { return nil }
        }
    }

    private func wake(_ count: Int) {
        var count = UInt64(count)
        _ = Glibc.write(semaphore, &count, 8)
    }
}
