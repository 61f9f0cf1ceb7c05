import BrokerCore
import Synchronization
import Threads

/// Checks passwords on its own thread: Argon2 takes tens of milliseconds.
///
/// Cached passwords are answered first, between two full checks, so that returning clients do not
/// wait behind strangers who guess. Both queues are bounded; overflow is answered at once.
package final class Authenticator: Sendable {
    /// Requests waiting for the cache lookup, which begins at the latest after the running check.
    package static let arrivedCapacity = 8_192

    private let arrived: WorkQueue<AuthenticationRequest>
    private let arrivedCount = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)
    private let check: PasswordCheck
    private let answer: @Sendable (AuthenticationRequest, PasswordCheck.Outcome) -> Void

    /// Calls `answer` on its thread, once per accepted request, unless ``stop()`` comes first.
    package init(
        _ check: PasswordCheck,
        answer: @escaping @Sendable (AuthenticationRequest, PasswordCheck.Outcome) -> Void
    ) throws {
        self.check = check
        self.answer = answer
        arrived = try WorkQueue(name: "hermes-auth")
        try WorkerThread.start(name: "hermes-auth", urgency: .patient) { self.run() }
    }

    /// Adds a request; false when too many wait. Called by one thread only.
    package func submit(_ request: AuthenticationRequest) -> Bool {
        guard arrivedCount.load(ordering: .relaxed) < Self.arrivedCapacity else { return false }
        arrivedCount.add(1, ordering: .relaxed)
        return arrived.post(request)
    }

    /// Requests whose full check has not begun.
    package var waitingCount: Int {
        arrivedCount.load(ordering: .relaxed) + waiting.load(ordering: .relaxed)
    }

    /// Ends the thread; waiting requests are dropped.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        arrived.close()
    }

    private func run() {
        var queue = PasswordQueue()
        while let requests = arrived.takeAll(waitMilliseconds: queue.isEmpty ? -1 : 0) {
            for request in requests {
                guard !isStopped.load(ordering: .relaxed) else { return }
                recall(request, or: &queue)
            }
            guard !isStopped.load(ordering: .relaxed), let request = queue.removeFirst() else {
                continue
            }
            waiting.store(queue.count, ordering: .relaxed)
            answer(request, check.verify(request.userName, request.password) ? .right : .wrong)
        }
    }

    private func recall(_ request: AuthenticationRequest, or queue: inout PasswordQueue) {
        arrivedCount.subtract(1, ordering: .relaxed)
        if check.recall(request.userName, request.password) {
            answer(request, .right)
        } else {
            let displaced = queue.append(request)
            waiting.store(queue.count, ordering: .relaxed)
            if let displaced { answer(displaced, .busy) }
        }
    }
}
