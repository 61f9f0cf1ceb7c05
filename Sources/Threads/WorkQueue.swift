import CLinux
import Glibc
import Synchronization

/// Hands tasks from any thread to one worker, which takes all of them at once and sleeps while
/// there are none.
///
/// Only a worker that sleeps is woken, so that posting to a busy worker makes no system call.
public final class WorkQueue<Task: Sendable>: Sendable {
    private struct State {
        var tasks: [Task] = []
        var isSleeping = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wakeDescriptor: CInt

    /// Opens the queue. `name` stands in errors only.
    public init(name: String) throws(ThreadFailure) {
        wakeDescriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        guard wakeDescriptor >= 0 else { throw ThreadFailure(name: name, code: errno) }
    }

    deinit { _ = Glibc.close(wakeDescriptor) }

    /// Hands a task to the worker; false once the queue is closed.
    @discardableResult
    public func post(_ task: Task) -> Bool {
        let (isAccepted, isSleeping) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.tasks.append(task)
            defer { state.isSleeping = false }
            return (true, state.isSleeping)
        }
        if isSleeping { wakeUp(wakeDescriptor) }
        return isAccepted
    }

    /// Takes no further tasks and wakes the worker, which still gets those that wait.
    public func close() {
        let isSleeping = state.withLock { state in
            state.isClosed = true
            defer { state.isSleeping = false }
            return state.isSleeping
        }
        if isSleeping { wakeUp(wakeDescriptor) }
    }

    /// Takes all tasks, in order, and sleeps while there are none. Returns an empty array after
    /// `waitMilliseconds` without a task (a negative number waits for ever), and `nil` once the
    /// queue is closed and empty.
    public func takeAll(waitMilliseconds: Int32 = -1) -> [Task]? {
        while true {
            let (tasks, isClosed) = state.withLock { state in
                var tasks: [Task] = []
                swap(&tasks, &state.tasks)
                state.isSleeping = tasks.isEmpty && !state.isClosed
                return (tasks, state.isClosed)
            }
            if !tasks.isEmpty { return tasks }
            if isClosed { return nil }
            var event = pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&event, 1, waitMilliseconds)
            var counter: UInt64 = 0
            if count > 0 { _ = Glibc.read(wakeDescriptor, &counter, 8) }
            if count == 0 {
                state.withLock { $0.isSleeping = false }
                return []
            }
        }
    }
}
