import BrokerAPI
import Synchronization

/// The admin plane's only way into the data plane.
package protocol BrokerControl: Sendable {
    /// Hands a command over without waiting. A full mailbox, or a broker that has stopped, answers it at
    /// once with ``BrokerUnavailable``, which HTTP shows as 503 with `Retry-After`.
    func send(_ command: BrokerCommand)

    /// What the kernel says of the process now.
    var process: ProcessFigures { get }
    /// Figures of the durable store, which keep nobody waiting; `nil` with `durability: none`.
    var store: StoreStatus? { get }
    /// Forgets damage that was found: what it was about, empty if there was none.
    func acceptLoss() async -> [String]
    /// Copies everything that is stored into an empty or new folder of the broker's machine, and
    /// returns once the copy is on the disk.
    func backUp(to directory: String) async throws(BackupFailure)
}

extension BrokerControl {
    /// Sends a command and waits for its answer; a task that is cancelled waits no longer, and nobody knows
    /// what became of the command.
    func ask<Answer: Sendable>(
        _ command: (@escaping Reply<Answer>) -> BrokerCommand
    ) async throws(Problem) -> Answer {
        let pending = PendingAnswer<Answer>()
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                pending.wait(continuation)
                send(command { pending.resume($0) })
            }
        } onCancel: {
            pending.resume(.failure(.stopping))
        }
        do {
            return try answer.get()
        } catch {
            // The shard does not know why the store refuses.
            throw Problem(error == .storeRefuses && store?.isFull == true ? .diskFull : error)
        }
    }
}

/// The first of an answer and a cancellation resumes the caller.
private final class PendingAnswer<Answer: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<BrokerAnswer<Answer>, Never>)
        case answered(BrokerAnswer<Answer>)
    }

    private let state = Mutex(State.new)

    func wait(_ continuation: CheckedContinuation<BrokerAnswer<Answer>, Never>) {
        let early = state.withLock { state -> BrokerAnswer<Answer>? in
            if case .answered(let answer) = state { return answer }
            state = .waiting(continuation)
            return nil
        }
        if let early { continuation.resume(returning: early) }
    }

    func resume(_ answer: BrokerAnswer<Answer>) {
        let waiting = state.withLock { state -> CheckedContinuation<BrokerAnswer<Answer>, Never>? in
            defer { state = .answered(answer) }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        waiting?.resume(returning: answer)
    }
}

/// There is no backup; the text is for a person, and safe to show.
package enum BackupFailure: Error, Sendable, Equatable {
    /// The folder cannot take one.
    case unusableFolder(String)
    case outOfSpace(String)
    /// Nothing is stored with `durability: none`.
    case nothingStored
    /// The store cannot make one at present.
    case failed(String)
}
