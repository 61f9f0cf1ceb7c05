import BrokerAPI
import Synchronization

/// The admin plane's only way into the data plane.
package protocol BrokerControl: Sendable {
    /// Sends a command without waiting. A full mailbox or a stopped broker answers at once with
    /// ``BrokerUnavailable``, which becomes 503 with `Retry-After`.
    func send(_ command: BrokerCommand)

    /// Figures of the process from the kernel.
    var process: ProcessFigures { get }
    /// Figures of the durable store, without waiting; `nil` with `durability: none`.
    var store: StoreStatus? { get }
    /// True while an operator moves the clients elsewhere; without waiting.
    var isDraining: Bool { get }
    /// Accepts the loss of damaged data; returns a description of it, empty without any.
    func acceptLoss() async -> [String]
    /// Copies the store into an empty or new folder on the broker's machine, with `bans` as the file
    /// of bans beside it; returns when the copy is on disk.
    func backUp(to directory: String, bans: [UInt8]?) async throws(BackupFailure)
}

extension BrokerControl {
    /// Sends a command and waits for its answer. A cancelled task stops waiting; the command may
    /// still be carried out.
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
            throw problem(error)
        }
    }

    /// Asks what a feature answers.
    func ask<Question: BrokerQuestion>(
        _ question: Question
    ) async throws(Problem) -> Question.Answer {
        try await ask { .question(Asked(question, reply: $0)) }
    }

    /// The problem of a message that was refused.
    func problem(_ reason: BrokerUnavailable) -> Problem {
        // Only the store knows that the disk is full.
        Problem(reason == .storeRefuses && store?.isFull == true ? .diskFull : reason)
    }
}

/// Resumes the caller with the answer or the cancellation, whichever comes first.
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

/// The backup failed; the text can be shown.
package enum BackupFailure: Error, Sendable, Equatable {
    /// The folder cannot be used.
    case unusableFolder(String)
    case outOfSpace(String)
    /// `durability: none` stores nothing.
    case nothingStored
    /// The store cannot make a backup now.
    case failed(String)
}
